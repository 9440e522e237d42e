// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"testing"

	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/internal/convert/registryv1"
)

// TestOneAnnotation: the converter writes what the certificates look for, and neither may import the other.
func TestOneAnnotation(t *testing.T) {
	if registryv1.InjectAnnotation != certificate.InjectAnnotation {
		t.Errorf("bundles are rendered with %s, and certificates look for %s", registryv1.InjectAnnotation, certificate.InjectAnnotation)
	}
}
