// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func mounts(pairs ...string) []corev1.VolumeMount {
	var out []corev1.VolumeMount
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, corev1.VolumeMount{Name: pairs[i], MountPath: pairs[i+1]})
	}
	return out
}

// TestD6MountCertificate replaces whatever a Pod brings for its certificate.
func TestD6MountCertificate(t *testing.T) {
	const webhookPath, apiPath = "/tmp/k8s-webhook-server/serving-certs", "/apiserver.local.config/certificates"
	pod := corev1.PodSpec{
		Volumes: []corev1.Volume{{Name: "webhook-cert"}, {Name: "own"}, {Name: "data"}, {Name: "legacy"}},
		InitContainers: []corev1.Container{
			{Name: "dangling", VolumeMounts: mounts("own", "/certs", "data", "/data")},
			{Name: "innocent", VolumeMounts: mounts("data", "/data")},
		},
		Containers: []corev1.Container{
			{Name: "server", VolumeMounts: mounts("own", webhookPath, "data", "/data")},
			{Name: "sidecar", VolumeMounts: mounts("own", "/elsewhere", "legacy", apiPath)},
			{Name: "bare"},
		},
	}
	mountCertificate(&pod, "secret")
	both := mounts("webhook-cert", webhookPath, "apiservice-cert", apiPath)
	want := map[string][]corev1.VolumeMount{
		"dangling": append(mounts("data", "/data"), both...),
		"innocent": mounts("data", "/data"),
		"server":   append(mounts("data", "/data"), both...),
		"sidecar":  both,
		"bare":     both,
	}
	got := map[string][]corev1.VolumeMount{}
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		got[c.Name] = c.VolumeMounts
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	var volumes []string
	for _, v := range pod.Volumes {
		volumes = append(volumes, v.Name)
	}
	if diff := cmp.Diff([]string{"data", "webhook-cert", "apiservice-cert"}, volumes); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
}
