// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"bufio"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// WriteManifests writes objects as a stream of YAML documents, in their order.
func WriteManifests(out io.Writer, objects []*unstructured.Unstructured) error {
	buffered := bufio.NewWriter(out)
	for _, o := range objects {
		text, err := YamlText(o.Object)
		if err != nil {
			return fmt.Errorf("writing %s %s as YAML: %w", o.GetKind(), o.GetName(), err)
		}
		buffered.WriteString("---\n")
		buffered.Write(text)
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("writing the manifests: %w", err)
	}
	return nil
}
