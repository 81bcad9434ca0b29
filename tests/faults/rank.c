/* The second rank ends as it is told: exit, raise or abort, and a number. The first waits. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank, number = atoi(argv[2]);
    int exits = !strcmp(argv[1], "exit");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    /* An exit ends no other rank; Hydra's SIGTERM would be reported as an exit code, too. */
    if (exits)
        signal(SIGTERM, SIG_IGN);
    /* Else MPICH aborts the first one, which is still connecting, and nothing tells of the second. */
    MPI_Barrier(MPI_COMM_WORLD);
    /* Hydra's proxy may see that its client is gone after it has read how that ended, and reports a
       made-up status then; not once all output is closed. */
    if (rank == 1 && strcmp(argv[1], "abort")) {
        fclose(stdout);
        fclose(stderr);
    }
    sleep(1);
    if (rank == 1) {
        if (exits)
            exit(number);
        if (!strcmp(argv[1], "raise"))
            raise(number);
        MPI_Abort(MPI_COMM_WORLD, number);
    }
    sleep(exits ? 1 : 60);
    return 0;
}
