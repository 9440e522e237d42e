// SPDX-License-Identifier: Apache-2.0

package objecterror

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestNotServed: which answers say that the API server has no such resource.
func TestNotServed(t *testing.T) {
	gadgets := schema.GroupResource{Group: "example.com", Resource: "gadgets"}
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"none":               {"the request succeeded", nil, false},
		"no answer":          {"nothing is known", errors.New("connection refused"), false},
		"no such group":      {"a page without a Status, as client-go describes it", apierrors.NewGenericServerResponse(http.StatusNotFound, "PATCH", schema.GroupResource{}, "", "404 page not found", 0, true), true},
		"no such resource":   {"the group is served, the resource is not", &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Code: 404, Message: "the server could not find the requested resource"}}, true},
		"wrapped":            {"callers add what they did", fmt.Errorf("listing: %w", apierrors.NewGenericServerResponse(http.StatusNotFound, "LIST", gadgets, "", "", 0, true)), true},
		"no such object":     {"the answer names it", apierrors.NewNotFound(gadgets, "one"), false},
		"no such namespace":  {"the answer names it", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "shop"), false},
		"conversion webhook": {"its 404 says nothing about the resource", &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Code: 404, Message: "conversion webhook for example.com/v1, Kind=Gadget failed: 404"}}, false},
		"unavailable":        {"it is known, and cannot be asked", apierrors.NewServiceUnavailable("x"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NotServed(tc.err); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}
