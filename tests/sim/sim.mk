# Stand-ins for libcuda, libcudart and libcupti, and the workloads that run on them.
