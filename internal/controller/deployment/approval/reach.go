// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/controller/keyring"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// reachParts say what the hashes of Reach are of.
var reachParts = []string{"the server", "the certificate authorities", "the user"}

// reachPurpose has a version of its own: a server is compared with that of a plan with digests of another version.
const reachPurpose = "satchel.dev/kubeconfig/v1"

// Reach is where a kubeconfig leads as keyed hashes, one for each of reachParts: readers of the status cannot test guesses of a credential
// against them. "" for this cluster.
func Reach(of tenant.Reach, hashKey []byte) string {
	if of == (tenant.Reach{}) {
		return ""
	}
	var hashes []string
	for i, value := range []string{of.Server, of.Authorities, of.User} {
		hashes = append(hashes, hex.EncodeToString(keyring.Derive(hashKey, reachPurpose, reachParts[i], value)[:16]))
	}
	return strings.Join(hashes, ".")
}

// ServerOf identifies the server and the authorities of a kubeconfig, for BundleDeployments of one namespace; "" for this cluster. Only the
// installation can compute it.
func (a Approvals) ServerOf(namespace string, of tenant.Reach) string {
	if of == (tenant.Reach{}) {
		return ""
	}
	return a.Keys.Sign(format.Plan.Purpose("cluster-server"), namespace, of.Server, of.Authorities)
}

// LeadsElsewhere says what differs between the kubeconfig of an executed plan and the current one; nil if nothing does, or the
// spec has another reference, which counts by itself.
func LeadsElsewhere(was *v1alpha1.ExecutedPlan, spec *v1alpha1.BundleDeploymentSpec, reach string) []string {
	if was == nil || was.KubeConfigReach == reach || kubeConfigText(was.Cluster) != kubeConfigText(effective.RemoteCluster(spec.Target.ClusterReference)) {
		return nil
	}
	return []string{fmt.Sprintf("the kubeconfig of spec.target (%s) was replaced: it differs in %s",
		kubeConfigText(effective.RemoteCluster(spec.Target.ClusterReference)), strings.Join(differs(was.KubeConfigReach, reach, reachParts), ", "))}
}

// differs lists those of the first parts of reachParts in which two values of Reach differ.
func differs(was, is string, parts []string) []string {
	before, now := strings.Split(was, "."), strings.Split(is, ".")
	var found []string
	for i, part := range parts {
		if len(before) != len(reachParts) || len(now) != len(reachParts) || before[i] != now[i] {
			found = append(found, part)
		}
	}
	return found
}
