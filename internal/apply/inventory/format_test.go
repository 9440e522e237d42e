// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/tests/formats"
)

// The example has the readable and the packed form of entries with hashes of real objects. The packed form is not compressed.
func TestF56Inventory(t *testing.T) {
	desired := object(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"},"data":{"a":"b"}}`)
	rendered, err := inventory.NewHasher([]byte("key")).Rendered(desired)
	if err != nil {
		t.Fatal(err)
	}
	entry := inventory.Entry{
		ID: inventory.IDOf(desired), Version: "v1", Rendered: rendered, Mark: inventory.Leaving, Begun: true, Done: true,
		Fields: inventory.HashFields([]metav1.ManagedFieldsEntry{{
			Manager: "m", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:a":{}}}`),
		}}, "m"),
		Seen: inventory.HashSeen(&metav1.ObjectMeta{UID: "u", Generation: 3}),
	}
	some, many := inventory.New("target", entry), []inventory.Entry{entry}
	for i := range 600 {
		other := entry
		other.Name = fmt.Sprint("object-", i)
		switch i % 4 {
		case 1:
			other.Fields, other.Mark = inventory.Unrecorded, inventory.RunOnce
		case 2:
			other.Rendered, other.Begun, other.Mark = inventory.Hash{}, false, inventory.Unproven
		case 3:
			other.Seen, other.Done, other.Mark = inventory.HashSeen(&metav1.ObjectMeta{UID: "u", ResourceVersion: "7"}), false, ""
		}
		many = append(many, other)
	}
	readable, err := json.Marshal(mustEncode(t, some))
	if err != nil {
		t.Fatal(err)
	}
	compressed, err := base64.StdEncoding.DecodeString(mustEncode(t, inventory.New("target", many...)).Compressed)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := zlib.NewReader(bytes.NewReader(compressed))
	if err != nil {
		t.Fatal(err)
	}
	packed, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	formats.Golden(t, format.Inventory, append(append(readable, '\n'), packed...))
}

// The packed form of another version is told apart from a damaged one.
func TestF56InventoryOfAnotherVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		packed  string
		another bool
	}{
		"a newer version": {"\x02whatever", true},
		"none":            {"", false},
		"damaged":         {"\x01whatever", false},
	} {
		_, err := inventory.Decode(&v1alpha1.Inventory{Count: 1, Compressed: compressed(t, tc.packed)})
		var another *format.AnotherVersionError
		if err == nil || errors.As(err, &another) != tc.another {
			t.Errorf("%s: %v", name, err)
		}
	}
}
