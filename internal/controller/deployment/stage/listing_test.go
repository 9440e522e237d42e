// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
)

// objectOf has the given number of values.
func objectOf(values int) *unstructured.Unstructured {
	list := make([]any, values-2)
	return &unstructured.Unstructured{Object: map[string]any{"list": list}}
}

func TestDropKeepsWhatWasDecided(t *testing.T) {
	s := &Rendered{}
	s.Desired = []*unstructured.Unstructured{objectOf(10)}
	released := 0
	s.Release = func() { released++ }
	s.Drop()
	s.Drop()
	if released != 1 || len(s.Desired) != 1 || s.Desired[0] != nil {
		t.Errorf("released %d times, desired %v; want once, and only the count kept", released, s.Desired)
	}
}

func TestAnInventoryThatDoesNotFitStalls(t *testing.T) {
	of := &Subject{Object: &v1alpha1.BundleDeployment{}}
	var entries []inventory.Entry
	for i := range 25_000 {
		sum := sha256.Sum256([]byte(strconv.Itoa(i)))
		name := fmt.Sprintf("%x%x%x", sum, sha256.Sum256(sum[:]), sha256.Sum256(sum[1:]))
		entries = append(entries, inventory.Entry{ID: inventory.ID{Kind: "ConfigMap", Namespace: "a", Name: name}, Version: "v1"})
	}
	err := new(Listing).Record(of, inventory.New("target", entries...))
	var tooLarge *inventory.TooLargeError
	if f := failure.Of(err); !errors.As(err, &tooLarge) || !f.Stalled || f.Reason != v1alpha1.ReasonPlanRefused {
		t.Errorf("got %v (%+v), want a stalled refusal of the plan", err, f)
	}
	if of.Object.Status.Inventory != nil {
		t.Error("what does not fit was put into the status")
	}
}
