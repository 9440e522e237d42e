// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Identity is the ServiceAccount that a client acts as.
type Identity struct {
	Namespace, ServiceAccount string
}

// Validate refuses everything that is not the plain name of one ServiceAccount
// in one namespace, so that the user name built from it can mean nothing else.
func (i Identity) Validate() error {
	if problems := validation.IsDNS1123Label(i.Namespace); len(problems) > 0 {
		return fmt.Errorf("namespace %.64q of the service account: %s", i.Namespace, strings.Join(problems, "; "))
	}
	if problems := validation.IsDNS1123Subdomain(i.ServiceAccount); len(problems) > 0 {
		return fmt.Errorf("service account name %.64q: %s", i.ServiceAccount, strings.Join(problems, "; "))
	}
	return nil
}

// Username is how the API server knows the account.
func (i Identity) Username() string {
	return "system:serviceaccount:" + i.Namespace + ":" + i.ServiceAccount
}

// String is the account for people: namespace/name.
func (i Identity) String() string { return i.Namespace + "/" + i.ServiceAccount }
