/* Runs system calls inside of another process (ptrace), as an attacker would who runs code there.
 *
 * inject PID: reads lines "NAME NUMBER ARGUMENT..." and prints "NAME RESULT" for each. An argument
 * is a number, or =TEXT: the address of that text. The process goes on where it was. x86_64 only. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

static pid_t pid;
static struct user_regs_struct saved;

static unsigned long place_text(const char *text, unsigned long at) {
    char padded[128] = {0};
    strncpy(padded, text, sizeof padded - 1);
    for (size_t i = 0; i < sizeof padded; i += 8)
        ptrace(PTRACE_POKEDATA, pid, at + i, *(long *)(padded + i));
    return at;
}

static long call(long number, const long *arguments) {
    struct user_regs_struct now = saved;
    int status;
    now.rax = number;
    now.orig_rax = -1;
    now.rdi = arguments[0];
    now.rsi = arguments[1];
    now.rdx = arguments[2];
    now.r10 = arguments[3];
    now.r8 = arguments[4];
    now.r9 = arguments[5];
    now.rip = saved.rip - 2;
    now.rsp = (saved.rsp - 65536) & ~15UL;
    ptrace(PTRACE_SETREGS, pid, 0, &now);
    ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
    waitpid(pid, &status, __WALL);
    ptrace(PTRACE_GETREGS, pid, 0, &now);
    return now.rax;
}

int main(int count, char **words) {
    char line[512];
    int status;
    pid = count > 1 ? atoi(words[1]) : 0;
    if (ptrace(PTRACE_ATTACH, pid, 0, 0)) return perror("attach"), 1;
    waitpid(pid, &status, __WALL);
    ptrace(PTRACE_GETREGS, pid, 0, &saved);
    /* It was interrupted in a system call, behind its instruction (0f 05). */
    if ((ptrace(PTRACE_PEEKTEXT, pid, saved.rip - 2, 0) & 0xffff) != 0x050f) {
        fprintf(stderr, "it is not in a system call\n");
        ptrace(PTRACE_DETACH, pid, 0, 0);
        return 2;
    }
    while (fgets(line, sizeof line, stdin)) {
        long arguments[6] = {0};
        char *name = strtok(line, " \n"), *word = strtok(NULL, " \n");
        if (!name || !word) continue;
        long number = strtol(word, NULL, 0);
        for (int i = 0; i < 6 && (word = strtok(NULL, " \n")); i++)
            arguments[i] = *word == '='
                ? (long)place_text(word + 1, ((saved.rsp - 32768) & ~4095UL) + 128 * i)
                : (long)strtoull(word, NULL, 0);
        printf("%s %ld\n", name, call(number, arguments));
    }
    ptrace(PTRACE_SETREGS, pid, 0, &saved);
    ptrace(PTRACE_DETACH, pid, 0, 0);
    return 0;
}
