// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/tests/controlplane/progress"
)

func TestBuildProgress(t *testing.T) {
	counter := &progress.Packages{}
	for _, output := range []string{"k8s.io/a\nk8s", ".io/b\n# k8s.io/b\n./b.go:1:2: undefined", ": x\n"} {
		if _, err := counter.Write([]byte(output)); err != nil {
			t.Fatal(err)
		}
	}
	if got := counter.String(); !strings.Contains(got, "2 packages") {
		t.Error(got)
	}
	if err := counter.Problem(); err == nil || !strings.Contains(err.Error(), "b.go:1:2: undefined: x") {
		t.Errorf("problem: %v", err)
	}
}

func TestReportIsSilentWithoutWriter(t *testing.T) {
	progress.Report(nil, func() string { return "x" })()
	var out bytes.Buffer
	stop := progress.Report(&out, func() string { return "x" })
	stop()
	stop()
	if out.Len() != 0 {
		t.Errorf("wrote %q before anything took long", out.String())
	}
}
