// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/tests/formats"
)

func TestF56Installation(t *testing.T) {
	record := Record{
		Version: "v1.2.3", OwnNamespace: true,
		Options: Options{Namespace: "platform", Values: map[string]any{"image": map[string]any{"registry": "example.org/a"}}},
		Objects: []ID{{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "platform", Name: "a"}, {Version: "v1", Kind: "Namespace", Name: "platform"}},
	}
	kept, err := record.ConfigMap()
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(kept.Object)
	if err != nil {
		t.Fatal(err)
	}
	formats.Golden(t, format.Installation, append(text, formats.Shape(Record{})...))

	if err := unstructured.SetNestedField(kept.Object, "installation/99", "data", "format"); err != nil {
		t.Fatal(err)
	}
	var another *format.AnotherVersionError
	if _, err := ReadRecord(kept); !errors.As(err, &another) || !strings.Contains(err.Error(), "v1.2.3") {
		t.Errorf("of another version: %v", err)
	}
}
