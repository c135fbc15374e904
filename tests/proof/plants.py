# SPDX-License-Identifier: GPL-2.0-only
"""The matrix: one line a plant. KIND@PLACE as in tests/sim/workloads/planted; the code and role that are expected come
with the program's own truth file.
"""

ALL = (0.2, 1, 5, 30)
LONG = (1, 5, 30)

# (KIND@PLACE, stalls in ms[, further arguments of the program])
SINGLES = [
    ("compute@launcher", ALL),
    ("compute@thread", ALL),
    ("compute@worker", LONG),
    ("compute@process", (5,)),
    ("serial@launcher", ALL),
    ("sleep@launcher", ALL),
    ("sleep@thread", LONG),
    ("sleep@worker", LONG),
    ("sleep@process", (5,)),
    ("lock@launcher", ALL),
    ("lock_turns@launcher", (5, 30)),
    ("lock_shared@launcher", LONG),
    ("disk@launcher", LONG),
    ("disk@thread", (5,)),
    ("disk@worker", (5, 30)),
    ("major_fault@launcher", LONG),
    ("major_fault@worker", (5,)),
    ("minor_fault@launcher", LONG),
    ("minor_fault@worker", (5,)),
    ("mmap_lock@launcher", (5, 30)),
    ("network@launcher", LONG),
    ("network@worker", (5,)),
    ("peer_sleeps@launcher", LONG),
    ("file_lock@launcher", LONG),
    ("timed_met@launcher", LONG),
    ("timed_out@launcher", LONG),
    ("false_wakes@launcher", (5,)),
    ("respawn@launcher", (5, 30)),
    ("barrier@launcher", (30,)),
    ("barrier@worker", (30,)),
    ("child@launcher", LONG),
    ("signal@launcher", ALL),
    ("contention@launcher", (5, 30)),
    ("contention@worker", (5, 30)),
    ("bound@launcher", (5, 30)),
    ("bound@worker", (30,)),
    ("throttled@launcher", (5, 30)),
    ("throttled@worker", (5, 30)),
    ("pool@launcher", (5,)),
    ("pool_slow@launcher", (5,)),
    ("no_work@launcher", (5, 30)),
    ("gil@launcher", (5,)),
    ("gc@launcher", (5, 30)),
    ("cuda_lock@launcher", LONG),
    ("cuda_api@launcher", LONG),
    ("dependency@launcher", ALL),
    ("cuda_alloc@launcher", LONG),
    ("cuda_free@launcher", (5,)),
    ("compile@launcher", LONG),
    ("copy_gap@launcher", (1, 5)),
    ("pageable_copy@launcher", LONG),
    ("launch_bound@launcher", (1, 5, 30)),
]

# Two kinds in alternate steps, the second twice as long (or the first, where it is named so): the top is defined.
DOUBLES = [
    ("compute@launcher:3", "sleep@launcher:6"),
    ("sleep@launcher:3", "compute@launcher:6"),
    ("lock@launcher:3", "compute@launcher:6"),
    ("compute@thread:3", "lock@launcher:6"),
    ("sleep@worker:3", "compute@launcher:6"),
    ("compute@launcher:3", "compute@worker:6"),
    ("compute@worker:3", "compute@launcher:6"),
    ("disk@worker:4", "sleep@launcher:8"),
    ("signal@launcher:3", "child@launcher:6"),
    ("cuda_alloc@launcher:3", "compute@launcher:6"),
    ("sleep@thread:3", "disk@launcher:6"),
    ("compute@worker:3", "sleep@worker:6"),
]

# A GPU-bound loop with something beside it.
NULLS = ["none", "spin", "doze", "writer", "fight", "fault", "visitors", "idlers"]

# What runs in `make test`.
SUBSET_SINGLES = ["compute@thread:5", "sleep@worker:5", "lock_turns@launcher:5", "signal@launcher:1",
                  "cuda_alloc@launcher:5", "compute@launcher:0.2"]
SUBSET_DOUBLES = [("sleep@launcher:3", "compute@launcher:6")]
SUBSET_NULLS = ["fight"]
