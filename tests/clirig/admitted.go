// SPDX-License-Identifier: Apache-2.0

package clirig

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/manifests"
)

// Admitted checks that an API server would accept Satchel's objects of a stream of documents, by the CRDs. It returns how many
// there are.
func Admitted(t testing.TB, stream string) int {
	t.Helper()
	seen := 0
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(stream)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return seen
		}
		var object unstructured.Unstructured
		if err == nil {
			err = yaml.Unmarshal(document, &object.Object)
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, stream)
		}
		if object.GroupVersionKind().Group != v1alpha1.GroupVersion.Group {
			continue
		}
		seen++
		_, problems, err := manifests.Validate(t.Context(), &object)
		if err != nil || len(problems) > 0 {
			t.Errorf("%s %s is refused: %v %q in\n%s", object.GetKind(), object.GetName(), err, problems, document)
		}
	}
}
