"""What `launches.py` makes of kernels that hang and of processes that end. Needs no GPU: another program stands for the one that launches.

    python3 fuzz/test_launches.py
"""
import sys
import unittest

from launches import run

# k1 is right, k2 hangs unless its waits give up, k3 takes the process down, k4 is wrong.
LAUNCHES = """
import json, os, sys, time
kind = sys.argv[1]
for line in sys.stdin:
    name, number = line.split()
    row = {"name": name, "launches": 5, "persistent": False, "maps": True, "wrong": None}
    if name == "k2" and not kind:
        time.sleep(60)
    if name == "k2":
        row["wrong"], row["launches"] = "gave up: line 7", 1
    if name == "k3":
        os._exit(1)
    if name == "k4":
        row["wrong"] = "buffer 2, turn 0"
    print(json.dumps(row), flush=True)
"""


class Launches(unittest.TestCase):
    def wrong(self, names, bounded):
        rows = run([sys.executable, "-c", LAUNCHES], names, bounded, patience=2)
        self.assertEqual([row["name"] for row in rows], bounded + names)
        return [(row["name"], row["wrong"]) for row in rows if row["wrong"]]

    def test_a_wait_that_hangs_is_named(self):
        self.assertEqual(self.wrong(["k1", "k2", "k1"], ["k1", "k2"]), [
            ("k2", "gave up: line 7"), ("k2", "hangs, or ends its process; with bounds: gave up: line 7")])

    def test_others_are_launched_behind_what_ends_the_process(self):
        self.assertEqual(self.wrong(["k3", "k1", "k4"], []), [("k3", "hangs, or ends its process"), ("k4", "buffer 2, turn 0")])
        self.assertEqual(self.wrong(["k3"], ["k3"])[1], ("k3", "hangs, or ends its process; with bounds: hangs, or ends its process"))

    def test_nothing_is_wrong(self):
        self.assertEqual(self.wrong(["k1", "k1"], ["k1"]), [])


if __name__ == "__main__":
    unittest.main()
