/* Sends a file over the loopback interface, and receives it into a directory and into memory.
 *
 *   cargo build --release -p fontana-capi
 *   cc -I crates/capi/include crates/capi/examples/transfer.c -L target/release -lfontana_c
 *   LD_LIBRARY_PATH=target/release ./a.out FILE DIRECTORY
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fontana.h"

static void on_event(void *context, const char *name, const char *json) {
  int *events = context;
  *events += 1;
  if (strcmp(name, "accepted") == 0 || strcmp(name, "summary") == 0) printf("%s\n", json);
}

static int failed(const char *what, int code) {
  const char *kind = fontana_error_kind(), *text = fontana_error_text();
  fprintf(stderr, "%s: %s", what, fontana_code_word(code));
  if (text) fprintf(stderr, ": %s (%s)", text, kind);
  fprintf(stderr, "\n");
  return code;
}

/* Runs a receiver to its end, and frees it. */
static int receive(const char *what, fontana_session *receiver) {
  int events = 0;
  int code = fontana_run(receiver, on_event, &events);
  if (code) failed(what, code);
  printf("%s: %zu bytes in memory, events: %s\n", what, fontana_written(receiver),
         events ? "yes" : "no");
  fontana_free(receiver);
  return code;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s FILE DIRECTORY\n", argv[0]);
    return 2;
  }
  const char *paths[] = {argv[1]};
  const char *here = "127.0.0.1";
  fontana_send_options send = {.to = "239.255.77.71:7771", .interface_name = here,
                               .rate = 50000000};
  fontana_receive_options options = {.interface_name = here, .timeout_ms = 30000};
  fontana_session *sender = NULL, *receiver = NULL;

  int code = fontana_send(paths, 1, &send, &sender);
  if (code) return failed("send", code);
  const char *ticket = fontana_ticket(sender);
  printf("ticket: %s\n", ticket);

  code = fontana_receive(ticket, argv[2], &options, &receiver);
  if (code) return failed("receive", code);
  code = receive("into a directory", receiver);
  if (code) return code;

  size_t size = 1 << 20;
  uint8_t *buffer = malloc(size);
  if (!buffer) return 5;
  code = fontana_receive_into(ticket, buffer, size, &options, &receiver);
  if (code) return failed("receive into memory", code);
  code = receive("into memory", receiver);
  printf("first byte: %u\n", buffer[0]);
  free(buffer);
  if (code) return code;

  fontana_stop(sender);
  code = fontana_run(sender, NULL, NULL);
  printf("the sender: %s\n", fontana_code_word(code));
  fontana_free(sender);

  /* What is wrong has a code, a kind and a text. */
  code = fontana_receive("no ticket", argv[2], NULL, &receiver);
  printf("an invalid ticket: %d %s: %s\n", code, fontana_error_kind(), fontana_error_text());
  paths[0] = "/does/not/exist";
  code = fontana_send(paths, 1, NULL, &sender);
  printf("a missing file: %d %s\n", code, fontana_error_kind());
  return 0;
}
