// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Identity is the user that a client acts as, and the cluster. Two clients with the same identity
// see the same.
type Identity struct {
	// Namespace and ServiceAccount name the account. On a remote cluster ServiceAccount may be
	// empty: then the client acts as the user of the kubeconfig, and Namespace is that of
	// the kubeconfig.
	Namespace, ServiceAccount string
	// Cluster is a hash of the kubeconfig, and Host the server in it; both are empty for
	// the cluster that the controller runs in.
	Cluster, Host string
}

// Validate refuses everything but the plain name of one ServiceAccount
// in one namespace, so that the user name built from it is unambiguous.
func (i Identity) Validate() error {
	if problems := validation.IsDNS1123Label(i.Namespace); len(problems) > 0 {
		return fmt.Errorf("namespace %.64q of the service account: %s", i.Namespace, strings.Join(problems, "; "))
	}
	if problems := validation.IsDNS1123Subdomain(i.ServiceAccount); len(problems) > 0 {
		return fmt.Errorf("service account name %.64q: %s", i.ServiceAccount, strings.Join(problems, "; "))
	}
	return nil
}

// validateRemote is Validate for a remote cluster, where the account may be left out.
func (i Identity) validateRemote() error {
	if i.Cluster == "" {
		return errors.New("a client for a remote cluster needs a kubeconfig")
	}
	if i.ServiceAccount == "" {
		return Identity{Namespace: i.Namespace, ServiceAccount: "none"}.Validate()
	}
	return i.Validate()
}

// Remote tells whether this is an identity on another cluster.
func (i Identity) Remote() bool { return i.Cluster != "" }

// Username is the account's name for the API server; empty for the user of a
// kubeconfig, as only the remote cluster knows that name.
func (i Identity) Username() string {
	if i.ServiceAccount == "" {
		return ""
	}
	return "system:serviceaccount:" + i.Namespace + ":" + i.ServiceAccount
}

// String is the identity for people: namespace/name.
func (i Identity) String() string {
	switch {
	case !i.Remote():
		return i.Namespace + "/" + i.ServiceAccount
	case i.ServiceAccount == "":
		return "the user of the kubeconfig on " + i.Host
	}
	return i.Namespace + "/" + i.ServiceAccount + " on " + i.Host
}
