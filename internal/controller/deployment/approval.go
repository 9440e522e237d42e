// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
)

// Approvals judges the approvals of this reconciler's deployments.
func (r *Reconciler) Approvals() approval.Approvals {
	return approval.Approvals{Client: r.Client, Live: r.APIReader, Labels: &r.labels, Keys: r.Keys, Snapshots: r.Snapshots, Manager: FieldManager}
}

// unlock decrypts the key of the hashes in the status. Where the keys of the installation were rotated, it encrypts that key
// with the newest one, and renews the proofs that are valid, so that the former key can be removed. Hashes and digests
// stay as they are: nothing is applied again, no hook runs again, and no approval is lost.
func (r *Reconciler) unlock(s *state) {
	was := s.Object.Status.Internal.HashKey
	var err error
	if s.HashKey, s.WrappedKey, err = r.Keys.HashKey(string(s.Object.UID), was); err != nil {
		s.HashKey, s.WrappedKey = nil, was // a process without keys does not start
		return
	}
	if s.WrappedKey == was {
		return
	}
	s.Object.Status.Internal.HashKey = s.WrappedKey
	r.Approvals().RenewProofs(s.Object)
}
