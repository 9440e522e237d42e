// SPDX-License-Identifier: Apache-2.0

package rollout

// Steps are the names of the steps of a reconcile, in order.
func Steps() (names []string) {
	for _, s := range new(Reconciler).steps() {
		names = append(names, s.Name)
	}
	return names
}
