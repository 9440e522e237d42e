// SPDX-License-Identifier: Apache-2.0

package deploymentconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func nodeAffinity(key string) *corev1.NodeAffinity {
	return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key}}}},
	}}
}

func podAffinity(topology string) *corev1.PodAffinity {
	return &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: topology}}}
}

// TestD7Affinity is the decision table of affinity overrides.
func TestD7Affinity(t *testing.T) {
	bundle := &corev1.Affinity{NodeAffinity: nodeAffinity("bundle"), PodAffinity: podAffinity("bundle")}
	for name, c := range map[string]struct {
		reason                  string
		present, override, want *corev1.Affinity
	}{
		"not set":         {"nothing changes", bundle, nil, bundle},
		"empty":           {"an empty affinity removes all", bundle, &corev1.Affinity{}, nil},
		"empty part":      {"an empty part removes that part", bundle, &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}, &corev1.Affinity{PodAffinity: podAffinity("bundle")}},
		"set part":        {"a part replaces, the others stay", bundle, &corev1.Affinity{NodeAffinity: nodeAffinity("config")}, &corev1.Affinity{NodeAffinity: nodeAffinity("config"), PodAffinity: podAffinity("bundle")}},
		"last part":       {"nothing left is nothing", &corev1.Affinity{PodAffinity: podAffinity("bundle")}, &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}}, nil},
		"nothing present": {"it is added", nil, &corev1.Affinity{NodeAffinity: nodeAffinity("config")}, &corev1.Affinity{NodeAffinity: nodeAffinity("config")}},
		"empty anti":      {"removing what is not there", nil, &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{}
			d.Spec.Template.Spec.Affinity = c.present.DeepCopy()
			(&Config{Affinity: c.override}).Apply(d)
			if diff := cmp.Diff(c.want, d.Spec.Template.Spec.Affinity); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// TestD7DeploymentConfig pins every other field.
func TestD7DeploymentConfig(t *testing.T) {
	toleration := corev1.Toleration{Key: "k", Operator: corev1.TolerationOpExists}
	source := corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}}}
	limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	container := corev1.Container{
		Env: []corev1.EnvVar{{Name: "A", Value: "bundle"}, {Name: "B", Value: "bundle"}}, EnvFrom: []corev1.EnvFromSource{source}, VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/old"}},
		Resources: corev1.ResourceRequirements{Requests: limits, Claims: []corev1.ResourceClaim{{Name: "gpu"}}},
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "bundle"}}}
	d.Spec.Template.Spec = corev1.PodSpec{
		Containers: []corev1.Container{container}, InitContainers: []corev1.Container{*container.DeepCopy()},
		Volumes: []corev1.Volume{{Name: "v"}}, Tolerations: []corev1.Toleration{toleration}, NodeSelector: map[string]string{"old": "1"},
	}
	untouched := d.Spec.Template.Spec.InitContainers[0].DeepCopy()
	config := &Config{
		Env: []corev1.EnvVar{{Name: "C", Value: "config"}, {Name: "A", Value: "config"}}, EnvFrom: []corev1.EnvFromSource{source},
		Volumes:      []corev1.Volume{{Name: "w"}, {Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/first"}, {Name: "v", MountPath: "/last"}, {Name: "w", MountPath: "/w"}}, Tolerations: []corev1.Toleration{toleration, {Key: "other"}},
		Resources: &corev1.ResourceRequirements{Limits: limits}, NodeSelector: map[string]string{"new": "1"}, Annotations: map[string]string{"a": "config", "b": "config"},
	}
	config.Apply(d)
	pod := d.Spec.Template.Spec
	want := corev1.PodSpec{
		Containers: []corev1.Container{{
			Env: []corev1.EnvVar{{Name: "A", Value: "config"}, {Name: "B", Value: "bundle"}, {Name: "C", Value: "config"}}, EnvFrom: []corev1.EnvFromSource{source},
			VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/last"}, {Name: "w", MountPath: "/w"}}, Resources: corev1.ResourceRequirements{Limits: limits, Claims: []corev1.ResourceClaim{{Name: "gpu"}}},
		}},
		InitContainers: []corev1.Container{*untouched},
		Volumes:        []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, {Name: "w"}},
		Tolerations:    []corev1.Toleration{toleration, {Key: "other"}},
		NodeSelector:   map[string]string{"new": "1"},
	}
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Errorf("Pod (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "bundle", "b": "config"}, d.Annotations); diff != "" {
		t.Errorf("Deployment's annotations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "config", "b": "config"}, d.Spec.Template.Annotations); diff != "" {
		t.Errorf("Pod's annotations (-want +got):\n%s", diff)
	}
}
