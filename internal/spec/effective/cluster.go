// SPDX-License-Identifier: Apache-2.0

package effective

import "github.com/satchel-dev/satchel/api/v1alpha1"

// IsRemote tells whether a reference names another cluster than this.
func IsRemote(ref v1alpha1.ClusterReference) bool { return ref != (v1alpha1.ClusterReference{}) }

// RemoteCluster is the reference where it names another cluster, and nil for this cluster.
func RemoteCluster(ref v1alpha1.ClusterReference) *v1alpha1.ClusterReference {
	if !IsRemote(ref) {
		return nil
	}
	return &ref
}

// ClusterReference is the reference to a remote cluster as a field of a spec; nil is this cluster.
func ClusterReference(remote *v1alpha1.ClusterReference) v1alpha1.ClusterReference {
	if remote == nil {
		return v1alpha1.ClusterReference{}
	}
	return *remote.DeepCopy()
}
