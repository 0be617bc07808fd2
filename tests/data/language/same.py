"""Whether what the files beside this one print is what was committed: same.py COMMITTED PRINTED

NumPy's functions and sums differ in their last digits from processor to processor, so numbers of a line that states bounds
(`-> rel R abs A`) may differ by a tenth of these.
"""
import re
import sys


def is_near(a, b, rel, abs_):
    try:
        a, b = float(a), float(b)
    except ValueError:
        return False
    return abs(a - b) <= rel * abs(a) + abs_


committed, printed = (open(name).read().splitlines() for name in sys.argv[1:])
if len(committed) != len(printed):
    sys.exit(f"{len(committed)} lines are committed, {len(printed)} are printed")
for number, lines in enumerate(zip(committed, printed), 1):
    bounds = re.search(r"-> rel (\S+) abs (\S+)", lines[0])
    rel, abs_ = (float(bound) / 10 for bound in bounds.groups()) if bounds else (0, 0)
    a, b = (line.split() for line in lines)
    found = len(a) == len(b) and next((pair for pair in zip(a, b) if pair[0] != pair[1] and not is_near(*pair, rel, abs_)), None)
    if found is not None:
        sys.exit(f"line {number}: {found or 'another number of words'}")
