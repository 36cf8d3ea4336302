from skillshelf import BaseSkill


class GuideSkill(BaseSkill):
    name = "shop-guide"
    description = "Explains the shop's rules. Use when asked about returns."
    instructions = "Goods can be returned within 30 days."

    def __init__(self, chapter: str) -> None:
        self.chapter = chapter
