// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

const (
	// LabelDeployment on an applied object names the BundleDeployment that owns it.
	LabelDeployment = v1alpha1.DeploymentLabel

	// LabelNamespace on an applied object names that BundleDeployment's namespace.
	LabelNamespace = v1alpha1.NamespaceLabel

	// AnnotationOrphaned is on an object that its deployment orphaned on
	// purpose. Its value names that deployment as namespace/name. The next
	// deployment that contains the object adopts it.
	AnnotationOrphaned = v1alpha1.OrphanedAnnotation

	// OrphanManager is the field manager that holds the fields of an orphaned
	// object until a deployment adopts it.
	OrphanManager = "satchel-orphaned"

	// HandoverManager is the field manager that holds fields which left a bundle because an autoscaler sets them, so that the
	// API server does not reset them. They are the autoscaler's as soon as it changes them.
	HandoverManager = "satchel-handover"

	managerPrefix  = "satchel/"
	longestManager = 128 // limit of the API server
)

// Owner is the BundleDeployment that the objects belong to.
type Owner struct {
	Namespace, Name string
}

// Manager is the owner's field manager: satchel/<namespace>/<name>, hashed when
// that is too long for the API server.
func (o Owner) Manager() string {
	manager := managerPrefix + o.Namespace + "/" + o.Name
	if len(manager) <= longestManager {
		return manager
	}
	sum := sha256.Sum256([]byte(manager))
	return managerPrefix + hex.EncodeToString(sum[:])
}

// Labels are the two labels that every applied object carries.
func (o Owner) Labels() map[string]string {
	return map[string]string{LabelDeployment: o.Name, LabelNamespace: o.Namespace}
}

// OwnerOf reads the owner from an object's labels; the zero Owner when there is none.
func OwnerOf(labels map[string]string) Owner {
	return Owner{Namespace: labels[LabelNamespace], Name: labels[LabelDeployment]}
}

// OwnerOfManager reads the owner from the name of a field manager; the zero
// Owner for other managers and for hashed names.
func OwnerOfManager(manager string) Owner {
	rest, ours := strings.CutPrefix(manager, managerPrefix)
	namespace, name, found := strings.Cut(rest, "/")
	if !ours || !found {
		return Owner{}
	}
	return Owner{Namespace: namespace, Name: name}
}

// IsManager tells whether a field manager is that of any deployment.
func IsManager(manager string) bool { return strings.HasPrefix(manager, managerPrefix) }

// IsZero tells that there is no owner.
func (o Owner) IsZero() bool { return o == Owner{} }

// String is the owner for people: "BundleDeployment shop/web".
func (o Owner) String() string { return "BundleDeployment " + o.Namespace + "/" + o.Name }
