// SPDX-License-Identifier: Apache-2.0

package inventory

// Latest is the inventory that is kept.
func (k *Kept) Latest() Current { return k.current }
