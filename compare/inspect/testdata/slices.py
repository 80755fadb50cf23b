"""Print what Python takes of an axis by a slice, for slice_test.go: python compare/inspect/testdata/slices.py > slices.txt

A line is a size, the text between the brackets, and the indexes; "error" where Python refuses it.
"""

import itertools

NUMBERS = ["", "0", "1", "3", "5", "9", "-1", "-2", "-5", "-9"]
STEPS = [None, "", "1", "2", "3", "9", "-1", "-2", "-9", "0"]

for size in (0, 1, 5):
    axis = list(range(size))
    texts = [n for n in NUMBERS if n]
    for start, stop, step in itertools.product(NUMBERS, NUMBERS, STEPS):
        texts.append(f"{start}:{stop}" + ("" if step is None else f":{step}"))
    for text in texts:
        try:
            taken = eval(f"axis[{text}]")
        except (IndexError, ValueError):
            taken = None
        if taken is None:
            print(size, text, "error")
        else:
            print(size, text, *(taken if isinstance(taken, list) else [taken]))
