// SPDX-License-Identifier: Apache-2.0

package child

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_AARCH64

// architectureCalls exist on this architecture only.
var architectureCalls []uint32

// refuseOtherABI has nothing to do: there is one ABI.
func (*filter) refuseOtherABI() {}
