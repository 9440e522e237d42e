// SPDX-License-Identifier: Apache-2.0

package settle

import "k8s.io/apimachinery/pkg/types"

// CountWork counts the changes of one reconcile.
func (st *Stage) CountWork(in *Input) {
	for _, of := range []*Input{in, in.Kept} {
		if of == nil {
			continue
		}
		key := of.Key()
		st.Work.Planned(of.Decided.Plan)
		st.Work.Written(key, of.Delivered.Applied)
		st.Work.Written(key, of.Delivered.Repaired.Result())
		if of.Delivered.Pruned != nil {
			st.Work.Pruned(of.Delivered.Pruned.Deleted)
		}
	}
}

// ShowHeld exposes how many objects of the deployment are held, once a plan was made.
func (st *Stage) ShowHeld(in *Input) {
	if in.Decided.Plan == nil || !in.Decided.Accepted {
		return
	}
	held := 0
	if in.Decided.Plan.Held != nil {
		held = len(in.Decided.Plan.Held.Objects)
	}
	st.Holds.Show(types.NamespacedName{Namespace: in.Object.Namespace, Name: in.Object.Name}, held)
}
