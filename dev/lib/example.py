#!/usr/bin/env python3
#
# dev/lib/example.py - the look-ahead that src/README.md shows is the one that is compiled and tested.
#
# Its first block of C has to be what is between two lines of test/modules/example's source, to the
# letter.  dev/lint calls this; it prints the first line that differs.

import re
import sys
from pathlib import Path

PAGE = Path("src/README.md")
SOURCE = Path("test/modules/example/la_test_example.c")
BEGIN, END = "/* ---- begin ---- */\n", "\n/* ---- end ---- */"


def main():
    source = SOURCE.read_text()
    shown = re.search(r"^```c\n(.*?)^```$", PAGE.read_text(), re.S | re.M)
    if not shown:
        print(f"{PAGE}: has no block of C")
        return 1
    wanted = source[source.index(BEGIN) + len(BEGIN) : source.index(END)].splitlines()
    got = shown[1].splitlines()
    first = PAGE.read_text()[: shown.start(1)].count("\n") + 1
    for n, line in enumerate(got + [None] * (len(wanted) - len(got))):
        if n >= len(wanted) or line != wanted[n]:
            print(f"{PAGE}:{first + n}: differs from the example in {SOURCE}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
