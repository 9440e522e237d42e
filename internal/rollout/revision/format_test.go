// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"errors"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/tests/formats"
)

func TestF56Revision(t *testing.T) {
	data := fullData(t)
	stored, err := data.Encode()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := data.Digest()
	if err != nil {
		t.Fatal(err)
	}
	formats.Golden(t, format.Revision, append(append(stored, '\n'), digest...))

	if _, err := Decode(stored, digest); err != nil {
		t.Error(err)
	}
	newer := strings.Replace(string(stored), format.Revision.Name(), "revision/99", 1)
	var another *format.AnotherVersionError
	if _, err := Decode([]byte(newer), digest); !errors.As(err, &another) || ReasonOf(err) != v1alpha1.ReasonWrittenByAnotherVersion {
		t.Errorf("of another version: %v", err)
	}
	newer = `{"format":"revision/99","template":"of another type"}`
	if _, err := Decode([]byte(newer), digest); !errors.As(err, &another) {
		t.Errorf("of another version, with other types: %v", err)
	}
}

func TestF56RolloutSpec(t *testing.T) {
	renderer, err := NewRenderer("apps", "7f3a91c2de", fullData(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	child, err := renderer.Render(canary())
	if err != nil {
		t.Fatal(err)
	}
	hash, err := SpecHash(&child.Spec, []string{"sha256:a"})
	if err != nil {
		t.Fatal(err)
	}
	formats.Golden(t, format.RolloutSpec, []byte(hash+"\n"))
	if SameForm("rollout-spec/99:" + strings.TrimPrefix(hash, format.RolloutSpec.Name()+":")) {
		t.Error("a hash of another version has the same form")
	}
}
