/* Fontana: bulk data to any number of hosts at once.
 *
 * A session runs on threads of its own. fontana_run gives its events to a callback, on the calling
 * thread, and returns when it has ended. examples/transfer.c is a program.
 *
 * Codes are those of the program: 0 complete, 2 usage, 3 incomplete, 4 verification failed,
 * 5 input or output, 6 refused, 7 authentication, 8 source changed, 70 internal error,
 * 75 nothing received, 130 interrupted. Texts are UTF-8, and end with 0.
 */

#ifndef FONTANA_H
#define FONTANA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A sender or a receiver, which runs on threads of its own.
typedef struct fontana_session fontana_session;

// Options of a sender. All 0 are the defaults.
typedef struct {
  // The group and port, or a host and port; null: 239.255.77.1:7701.
  const char *to;
  // The network interface: its name, address or network; null: that of the routing table.
  const char *interface_name;
  // The name that receivers give a single file; null: its own.
  const char *name;
  // Bits per second at most, headers included; 0: 100 Mbit/s.
  uint64_t rate;
  // TTL or hop limit of multicast; 0: 1, this network only.
  uint8_t hop_limit;
  // End when everything was sent once. Otherwise the sender sends until it is stopped.
  bool once;
  // With once: repair symbols per thousand source symbols, which make good what is lost.
  uint32_t repair_permille;
} fontana_send_options;

// Options of a receiver. All 0 are the defaults.
typedef struct {
  // Without a ticket: the group and port; null: 239.255.77.1:7701.
  const char *group;
  // The network interface: its name, address or network; null: that of the routing table.
  const char *interface_name;
  // Replace files that exist.
  bool overwrite;
  // Give up after this many milliseconds; 0: never.
  uint64_t timeout_ms;
  // Give up if nothing has arrived for this many milliseconds; 0: a minute.
  uint64_t silence_ms;
  // Bytes that a session may have at most; 0: 2^45.
  uint64_t max_bytes;
  // Into a buffer: the directory of repair symbols, which are in files without a name until
  // their blocks are verified; null: /dev/shm, which is memory, or that of temporary files.
  const char *staging;
} fontana_receive_options;

// What takes the events of a session: their name, and all of it as a JSON object, with the fields
// of docs/events.md. Both texts are valid until it returns. It may stop the session.
typedef void (*fontana_on_event)(void *context, const char *name, const char *json);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// What the last call of this thread failed with: what is wrong, with the values. Null if it did
// not fail. Valid until the next call of this thread.
const char *fontana_error_text(void);

// The kind of error that the last call of this thread failed with, by which a program handles it:
// "SourceMissing", "TargetExists", "Argument" and others. Null if it did not fail. Valid until the
// next call of this thread.
const char *fontana_error_kind(void);

// The word for a code: "complete", "incomplete" and others. Null if there is no such code.
const char *fontana_code_word(int32_t code);

// Starts a sender of files and directories. Returns 0, or the code of an error.
//
// # Safety
// `paths` has `count` texts. `options` is null or valid, and so are its texts. `session` is where
// the session goes; fontana_free frees it.
int32_t fontana_send(const char *const *paths,
                     size_t count,
                     const fontana_send_options *options,
                     fontana_session **session);

// Starts a receiver into a directory, which is created if it does not exist. A null ticket: the
// first session on the group. Returns 0, or the code of an error.
//
// # Safety
// `ticket` and `directory` are texts. `options` is null or valid, and so are its texts. `session`
// is where the session goes; fontana_free frees it.
int32_t fontana_receive(const char *ticket,
                        const char *directory,
                        const fontana_receive_options *options,
                        fontana_session **session);

// Starts a receiver of a session's only file into a buffer. Bytes are there as they arrive;
// fontana_written is how many are verified, from the beginning. A file that is longer than the
// buffer is an error.
//
// # Safety
// As of fontana_receive. `buffer` has room for `size` bytes, and is the session's until
// fontana_free has returned.
int32_t fontana_receive_into(const char *ticket,
                             uint8_t *buffer,
                             size_t size,
                             const fontana_receive_options *options,
                             fontana_session **session);

// The ticket of a sender, for receivers. Null for a receiver.
//
// # Safety
// `session` is valid. The text is valid until fontana_free.
const char *fontana_ticket(const fontana_session *session);

// Bytes that are in the buffer, from its beginning, all verified. 0 for other sessions.
//
// # Safety
// `session` is valid.
size_t fontana_written(const fontana_session *session);

// Gives the events of a session to `on_event`, on this thread, until the session has ended.
// `on_event` may be null. Returns the code of its outcome: 0 if everything is complete and
// verified. Otherwise fontana_error_text is the first error of a file that was given up, if there
// was one. A session can be run once.
//
// # Safety
// `session` is valid. `on_event` may be called with `context`, and does not unwind.
int32_t fontana_run(fontana_session *session, fontana_on_event on_event, void *context);

// Requests the end of a session, from any thread. What was received is saved.
//
// # Safety
// `session` is valid.
void fontana_stop(const fontana_session *session);

// Stops a session, waits for its threads, and frees it. Null is nothing.
//
// # Safety
// `session` is null, or from fontana_send, fontana_receive or fontana_receive_into, is not freed
// yet, and no other thread uses it.
void fontana_free(fontana_session *session);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FONTANA_H */
