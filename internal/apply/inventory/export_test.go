// SPDX-License-Identifier: Apache-2.0

package inventory

// Latest is the inventory that is kept.
func (k *Kept) Latest() Inventory { return k.latest() }
