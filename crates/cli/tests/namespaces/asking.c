/* A plugin for names like nss-resolve: it asks another program of the host over a socket, and says
   that it is not available where it cannot. Where it can ask, it says that there is no such name. */
#include <errno.h>
#include <netdb.h>
#include <nss.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

enum nss_status _nss_asking_gethostbyname4_r(
    const char *name, void **found, char *buffer, size_t length, int *error, int *of_host, int32_t *ttl) {
  int asked = socket(AF_UNIX, SOCK_STREAM, 0);
  if (asked < 0) {
    *error = errno;
    *of_host = NO_RECOVERY;
    return NSS_STATUS_UNAVAIL;
  }
  close(asked);
  *error = ENOENT;
  *of_host = HOST_NOT_FOUND;
  return NSS_STATUS_NOTFOUND;
}
