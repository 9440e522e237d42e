// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"encoding/hex"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/tests/formats"
)

func TestF56Grounds(t *testing.T) {
	of := &v1alpha1.BundleSource{}
	of.Name = "app"
	of.Spec.Sources = []v1alpha1.Source{{Image: &v1alpha1.ImageSource{Reference: "registry.example/app:v1"}}, {ConfigMap: &v1alpha1.LocalReference{Name: "a"}}}
	of.Status.Artifact = &meta.Artifact{Revision: "v1@sha256:a"}
	of.Status.Resolved = []v1alpha1.ResolvedSource{{Digest: "sha256:a", Trust: "sha256:keys", Destination: "d", Transport: "sha256:server"}}
	in := &Input{Subject: &stage.Subject{Object: &v1alpha1.BundleDeployment{}, HashKey: []byte("key")}}
	in.Object.UID = "uid"
	formats.Golden(t, format.Plan, []byte("source "+groundsOf(of)+"\ninputs "+hex.EncodeToString(in.inputsKey())+"\n"))
}
