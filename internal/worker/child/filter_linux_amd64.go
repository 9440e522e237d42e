// SPDX-License-Identifier: Apache-2.0

package child

import (
	"golang.org/x/sys/unix"
)

const architecture = unix.AUDIT_ARCH_X86_64

// architectureCalls exist on this architecture only.
var architectureCalls = []uint32{unix.SYS_EPOLL_WAIT, unix.SYS_TIME, unix.SYS_ARCH_PRCTL}

// refuseOtherABI ends the process at calls of the x32 ABI, which have the same
// architecture and other numbers.
func (f *filter) refuseOtherABI() {
	const x32 = 0x40000000
	f.add(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, 0, 1, x32)
	f.answer(unix.SECCOMP_RET_KILL_PROCESS)
}
