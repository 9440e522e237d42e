// SPDX-License-Identifier: Apache-2.0

package objecterror

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// TestFluxF13Mistyped: an object that does not fit the schema of its kind is not tried again and again.
func TestFluxF13Mistyped(t *testing.T) {
	widget := inventory.ID{Group: "example.org", Kind: "Widget", Namespace: "shop", Name: "one"}
	for name, tc := range map[string]struct {
		reason  string
		id      inventory.ID
		message string
		final   bool
		says    string
	}{
		"Duplicate": {"stays so", widget, `failed to create typed patch object (shop/one; example.org/v1, Kind=Widget): .spec.ports: duplicate entries for key [port=80]`, true,
			"a list has two items with the same key: keep one of them in the bundle: "},
		"Type": {"stays so", widget, `failed to create typed patch object (shop/one; example.org/v1, Kind=Widget): .spec.ports: expected list, got map`, true,
			"the object does not fit the schema of its kind: correct it in the bundle: "},
		"BuiltIn": {"its schema never changes", inventory.ID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "one"},
			`failed to create typed patch object (shop/one; apps/v1, Kind=Deployment): .spec.replica: field not declared in schema`, true, "correct it in the bundle"},
		"BuiltInGroup": {"its schema never changes", inventory.ID{Group: "networking.k8s.io", Kind: "Ingress", Namespace: "shop", Name: "one"},
			`failed to create typed patch object (shop/one; networking.k8s.io/v1, Kind=Ingress): .spec.x: field not declared in schema`, true, "correct it in the bundle"},
		"NewField": {"the CRD may not be loaded yet", widget, `failed to create typed patch object (shop/one; example.org/v1, Kind=Widget): .spec.new: field not declared in schema`, false, ""},
		"Other":    {"another failure", widget, "etcdserver: leader changed", false, ""},
		"Secret": {"no value is quoted", inventory.ID{Kind: "Secret", Namespace: "shop", Name: "one"},
			`failed to create typed patch object (shop/one; /v1, Kind=Secret): .data: expected map, got hunter22`, true, "the object does not fit the schema"},
	} {
		t.Run(name, func(t *testing.T) {
			status := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500, Message: tc.message}}
			for _, answer := range []error{status, apierrors.NewInternalError(errors.New(tc.message))} {
				err := Of(tc.id, answer)
				if err.Transient() == tc.final || !strings.Contains(err.Message, tc.says) || strings.Contains(err.Message, "hunter22") {
					t.Errorf("%s: transient %v, %s", tc.reason, err.Transient(), err)
				}
			}
		})
	}
}
