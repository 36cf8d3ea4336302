"""The system calls skillshelf makes on files.

These are the functions of `os` and `fcntl` themselves. Code that reads or writes files calls them through this module
(`system.open`, not `os.open`): the fault tests replace them here and fail, shorten or kill at the n-th call.
"""

from fcntl import flock as flock
from os import chmod as chmod
from os import close as close
from os import dup as dup
from os import fchmod as fchmod
from os import fchown as fchown
from os import fstat as fstat
from os import fsync as fsync
from os import ftruncate as ftruncate
from os import listdir as listdir
from os import mkdir as mkdir
from os import open as open
from os import pread as pread
from os import read as read
from os import readlink as readlink
from os import rename as rename
from os import replace as replace
from os import rmdir as rmdir
from os import scandir as scandir
from os import stat as stat
from os import symlink as symlink
from os import unlink as unlink
from os import write as write
