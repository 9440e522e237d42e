// SPDX-License-Identifier: Apache-2.0

// Package remove has the command delete. It shows what would go and what would stay before it deletes.
package remove
