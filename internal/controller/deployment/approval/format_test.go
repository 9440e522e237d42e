// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"bytes"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/controller/keyring"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/tests/formats"
)

// signing has a key.
func signing(t *testing.T) Approvals {
	t.Helper()
	ring, err := keyring.New(map[string][]byte{"20260101T000000Z": bytes.Repeat([]byte("a"), 32)})
	if err != nil {
		t.Fatal(err)
	}
	return Approvals{Keys: ring}
}

// recorded is a deployment with an executed plan and a healthy revision, both proven.
func recorded(a Approvals) *v1alpha1.BundleDeployment {
	d := &v1alpha1.BundleDeployment{}
	d.UID = "uid"
	d.Status.Internal.Executed = &v1alpha1.ExecutedPlan{
		Plan: "sha256:plan", Key: "sha256:key", Terms: "sha256:terms", Base: "sha256:base", Approval: "approval", Grounds: "sha256:grounds",
		Generation: 7, StartTime: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), ServiceAccountName: "installer", RemoteServiceAccountName: "remote",
		Cluster:         &v1alpha1.ClusterReference{KubeConfig: v1alpha1.KubeConfigReference{SecretRef: v1alpha1.KubeConfigSecretReference{Name: "kubeconfig", Key: "value"}}},
		KubeConfigReach: "a.b.c", DeletionPolicy: v1alpha1.DeletionOrphan, DeletesDefinitions: true,
	}
	a.Prove(d, d.Status.Internal.Executed)
	d.Status.Internal.Artifact = &v1alpha1.KeptArtifact{Material: "sha256:material", Proof: a.ProveHealthy(d, "sha256:material")}
	return d
}

func TestF56Proofs(t *testing.T) {
	d := recorded(signing(t))
	lines := []string{
		string(recordBytes(*d.Status.Internal.Executed)), d.Status.Internal.Executed.Proof, d.Status.Internal.Artifact.Proof,
		Reach(tenant.Reach{Server: "https://example.org", Authorities: "authorities", User: "user"}, []byte("key")),
	}
	formats.Golden(t, format.Plan, []byte(strings.Join(lines, "\n")+"\n"))
}
