//! DCCP sockets in userspace: async and blocking, over UDP encapsulation.
