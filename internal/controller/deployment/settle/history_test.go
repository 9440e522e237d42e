// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// TestBoundOrigins: a status has no room for ever longer histories of many long URLs.
func TestBoundOrigins(t *testing.T) {
	history := make([]v1alpha1.RevisionRecord, 50)
	for i := range history {
		history[i].Sources = []v1alpha1.RevisionOrigin{{URL: strings.Repeat("x", 2000)}}
	}
	boundOrigins(history)
	if history[15].Sources == nil || history[16].Sources != nil || history[49].Sources != nil {
		t.Errorf("kept: %v", len(history[15].Sources)+len(history[16].Sources))
	}
}
