"""Errors: one class for each kind."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """An error of a session, or an argument that is invalid."""

    #: The code: the exit code of the program. 2: options, 5: input or output, 6: refused, and others.
    code: int

    def __init__(self, message: str, code: int = 70) -> None:
        super().__init__(message)
        self.code = code

    @property
    def kind(self) -> str:
        """The kind of error, by which a program handles it."""
        return type(self).__name__


class NotComplete(Error):
    """A session has ended, and not everything is complete and verified."""

    #: What the session has done: the event ``summary``.
    report: dict[str, Any]

    #: What is wrong with each part that was given up.
    failures: list[str]

    def __init__(self, report: dict[str, Any], failures: list[str]) -> None:
        super().__init__(": ".join([report["verdict"], "; ".join(failures)][: 1 + bool(failures)]))
        self.code = report["code"]
        self.report = report
        self.failures = failures


class Argument(Error):
    """An argument is not what it should be."""


class Pattern(Error):
    """A pattern that selects files is invalid."""


class Nameless(Error):
    """A path to be sent has no last component that can be a name."""


class Address(Error):
    """Destinations, groups, sources or ports are invalid."""


class Membership(Error):
    """A group could not be joined."""


class Interface(Error):
    """The network interface does not exist, or does not fit."""


class Mtu(Error):
    """The interface's MTU is too small."""


class FileName(Error):
    """A file may not have this name."""


class StreamName(Error):
    """The name of a stream is a path."""


class SameName(Error):
    """Two files have one name."""


class ManifestDiffers(Error):
    """The files differ from the manifest."""


class CodeOfOurOwn(Error):
    """The code is unknown to other programs."""


class Congestion(Error):
    """The parameters of the congestion control are invalid."""


class LayerTooSlow(Error):
    """The lowest layer is too slow."""


class LayerTooFast(Error):
    """A layer is too fast."""


class LayersTooFast(Error):
    """All layers together are too fast."""


class LayerCount(Error):
    """The number of layers is not the number of channels."""


class WavesWithRates(Error):
    """Rates of layers were given for WEBRC, which determines its own."""


class GroupCount(Error):
    """The number of groups is not the number of channels."""


class OneChannelOnly(Error):
    """Several channels for a kind of session that has one."""


class ChannelsWithoutGroups(Error):
    """Several channels without multicast."""


class InterfacesWithoutGroup(Error):
    """Several interfaces without multicast."""


class ChannelsBeyondGroups(Error):
    """More channels than there are groups from the first one on."""


class UncontrolledNetwork(Error):
    """The session would leave this network without congestion control."""


class NothingToSend(Error):
    """There is nothing to send."""


class Mark(Error):
    """The record of a publisher's versions is corrupt."""


class NoPublisher(Error):
    """The publisher's key is missing."""


class NoSigner(Error):
    """The key to sign with is missing."""


class UnsignedDigests(Error):
    """The key by which receivers trust signed digests is missing."""


class OtherCertificate(Error):
    """A mirror's certificate is for something else."""


class SealedCertificate(Error):
    """A certificate with a group key."""


class Range(Error):
    """A number is outside its range."""


class Schedule(Error):
    """The session cannot have this transmission schedule."""


class NoFurtherFiles(Error):
    """A running session takes no further files."""


class GrowingPush(Error):
    """A session cannot both grow and have an end."""


class Reports(Error):
    """Reports cannot be collected, or not sent."""


class RepairOnDemand(Error):
    """A session cannot repair on demand."""


class RateFollowing(Error):
    """The rate of a session cannot follow its receivers."""


class TooMuch(Error):
    """There are more files than a session can describe."""


class SourceMissing(Error):
    """A file to be sent does not exist."""


class SourceDenied(Error):
    """A file to be sent may not be read by this user."""


class SourceRefused(Error):
    """A path to be sent was refused for another reason."""


class SourceDisk(Error):
    """The disk with the files to be sent failed."""


class SourceNotRegular(Error):
    """The path to be sent is neither a file with a size nor a directory nor a link."""


class SourceChanged(Error):
    """A file changed while it was being sent."""


class TargetRefused(Error):
    """The target directory may not be written to."""


class TargetDisk(Error):
    """The target's disk failed."""


class DiskFull(Error):
    """The target's disk is full."""


class DeviceFull(Error):
    """The disk of a file that is written in place is full."""


class TargetExists(Error):
    """A file of this name exists."""


class TargetIsDirectory(Error):
    """A directory has the file's name."""


class TargetBlocked(Error):
    """Another object is in the place of a directory."""


class TargetBusy(Error):
    """Another receiver uses the target."""


class DeviceInUse(Error):
    """The device is mounted or in use."""


class NotADevice(Error):
    """The path is neither a device nor a file."""


class NameCaseClash(Error):
    """Two names differ in letter case only, and the file system does not distinguish them."""


class NameRefused(Error):
    """The target cannot have a file of this name."""


class Geometry(Error):
    """Parameters describe no object: a defect of this library, or of the sender."""


class Network(Error):
    """The system refuses a socket."""


class NothingSent(Error):
    """The system refused every packet."""


class NoNeighbor(Error):
    """The hardware address of the next hop is unknown."""


class Consumer(Error):
    """The writer that takes received content failed."""


class Producer(Error):
    """The reader of the content to send failed."""


class ReadBack(Error):
    """A device does not return what was written to it."""


class Thread(Error):
    """The system starts no thread."""


class System(Error):
    """The system refuses another operation."""


class NothingSelected(Error):
    """Nothing in the session matches the selection."""


class Content(Error):
    """The received content contradicts itself."""


class Unsupported(Error):
    """A file is sent in a way that this library does not support."""


class MissingSlices(Error):
    """Slices of a file are missing."""


class ReceiversAbsent(Error):
    """A stream waited for receivers that did not come."""


class NotOneFile(Error):
    """A pipe or device takes one file, and the session has another number."""


class TooSmall(Error):
    """The device is too small."""


class StreamLate(Error):
    """The stream began before the receiver joined."""


class StreamLost(Error):
    """More of the stream was lost than its repair symbols can recover."""


class StreamBehind(Error):
    """The consumer is slower than the stream."""


class StreamTooLarge(Error):
    """The stream is longer than the limit."""


class StreamFailed(Error):
    """The received stream is not what was announced."""


class StreamBySender(Error):
    """The sender aborted the stream."""


class Panic(Error):
    """A thread of the session panicked."""


def named(kind: str) -> type[Error]:
    """The class of a kind."""
    found = globals().get(kind, Error)
    return found if isinstance(found, type) and issubclass(found, Error) else Error
