// SPDX-License-Identifier: Apache-2.0

package artifact

// StandbyHeader marks the answer of a server that waits to lead. Behind the same name there is another one that leads, and
// the next connection may meet it.
const StandbyHeader = "Satchel-Standby"

// MaxTokenBytes bounds a token; those of ServiceAccounts have about 1 KiB.
const MaxTokenBytes = 8 << 10
