/* MPI computes pi: each rank integrates a part of 4 / (1 + x^2), and a reduction adds up the parts.
 *
 *   pi [RANKS]
 *
 * fails unless that is the number of ranks. */

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 10000000 };

int main(int argc, char **argv) {
    char host[MPI_MAX_PROCESSOR_NAME];
    int rank, size, length;
    double part = 0, pi;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);
    printf("rank %d of %d on %s\n", rank, size, host);
    fflush(stdout);
    if (argc > 1 && size != atoi(argv[1])) {
        fprintf(stderr, "%d ranks, and %s are wanted\n", size, argv[1]);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int step = rank; step < STEPS; step += size) {
        double x = (step + 0.5) / STEPS;
        part += 4 / (1 + x * x) / STEPS;
    }
    MPI_Allreduce(&part, &pi, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("pi is %.10f\n", pi);
    MPI_Finalize();
    return fabs(pi - 3.141592653589793) > 1e-9;
}
