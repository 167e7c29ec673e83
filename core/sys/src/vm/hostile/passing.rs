//! Passing of open files between processes (`SCM_RIGHTS`).

use std::{
    io::{IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{fd::AsFd, unix::net::UnixStream},
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::{Errno, Node};

/// Room for one descriptor beside a message.
const ROOM: usize = rustix::cmsg_space!(ScmRights(1));

impl Node {
    /// Sends a descriptor of the same open file through a socket.
    pub fn send(&self, socket: &UnixStream) -> Result<(), Errno> {
        let mut room = [MaybeUninit::uninit(); ROOM];
        let mut beside = SendAncillaryBuffer::new(&mut room);
        let own = [self.0.as_fd()];
        if !beside.push(SendAncillaryMessage::ScmRights(&own)) {
            return Err(Errno::NOBUFS);
        }
        sendmsg(socket, &[IoSlice::new(&[0])], &mut beside, SendFlags::empty()).map(drop)
    }

    /// Waits for a descriptor from a socket.
    pub fn receive(socket: &UnixStream) -> Result<Self, Errno> {
        let mut room = [MaybeUninit::uninit(); ROOM];
        let mut beside = RecvAncillaryBuffer::new(&mut room);
        let mut byte = [0];
        let mut bytes = [IoSliceMut::new(&mut byte)];
        recvmsg(socket, &mut bytes, &mut beside, RecvFlags::CMSG_CLOEXEC)?;
        let mut files = beside.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut files) => files.next(),
            _ => None,
        });
        files.next().map(Self).ok_or(Errno::BADF)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn what_was_sent_is_the_same_open_file() {
        let (here, there) = UnixStream::pair().unwrap();
        let own = Node(File::open("/dev/null").unwrap().into());
        own.send(&here).unwrap();
        let received = Node::receive(&there).unwrap();
        let flags = rustix::io::fcntl_getfd(&received.0).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
        drop(here);
        assert_eq!(Node::receive(&there).err(), Some(Errno::BADF));
    }
}
