// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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

// An inventory and the rest of its deployment fit into what etcd stores, however large the spec is. What is stored already may
// be stored again, even if the spec has grown since.
func TestF43RoomBesideTheSpec(t *testing.T) {
	const etcd = 3 << 19
	d := &v1alpha1.BundleDeployment{}
	last := inventory.Limit(etcd)
	for values := 0; values <= 400<<10; values += 50 << 10 {
		d.Spec.Helm = &v1alpha1.HelmOptions{Values: &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `{"a":%q}`, strings.Repeat("x", values))}}
		room := RoomFor(d)
		full := d.DeepCopy()
		full.Status.Inventory = &v1alpha1.Inventory{Compressed: base64.StdEncoding.EncodeToString(make([]byte, room))}
		stored, err := json.Marshal(full)
		if err != nil {
			t.Fatal(err)
		}
		if len(stored) > etcd-100<<10-values || room >= last {
			t.Errorf("%d bytes of values leave %d bytes, %d before, and make an object of %d", values, room, last, len(stored))
		}
		if again := RoomFor(full); again < room || again > room+room/20 {
			t.Errorf("%d bytes of values leave %d bytes, and %d once they are taken", values, room, again)
		}
		last = room
	}
	d.Status.Inventory = &v1alpha1.Inventory{Compressed: strings.Repeat("A", 1<<20)}
	if room := RoomFor(d); room < 768<<10 {
		t.Errorf("an inventory of 768 KiB is stored, and only %d bytes may be stored again", room)
	}
}
