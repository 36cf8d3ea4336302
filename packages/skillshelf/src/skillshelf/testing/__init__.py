"""For the test suites of projects that ship skills, or a face of their own for them.

    def test_skills_are_complete():
        check_package("my_skills")

Everything here is public and stays.
"""

from skillshelf.testing._package import check_package

__all__ = ["check_package"]
