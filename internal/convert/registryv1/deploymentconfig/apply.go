// SPDX-License-Identifier: Apache-2.0

package deploymentconfig

import (
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Apply changes a Deployment (D7); without a config it does nothing.
func (c *Config) Apply(d *appsv1.Deployment) {
	if c == nil {
		return
	}
	pod := &d.Spec.Template.Spec
	for i := range pod.Containers {
		c.applyContainer(&pod.Containers[i])
	}
	pod.Volumes = ReplaceNamed(pod.Volumes, c.Volumes, func(v corev1.Volume) string { return v.Name })
	pod.Tolerations = addMissing(pod.Tolerations, c.Tolerations)
	if c.NodeSelector != nil {
		pod.NodeSelector = c.NodeSelector
	}
	if c.Affinity != nil {
		pod.Affinity = overrideAffinity(pod.Affinity, c.Affinity)
	}
	d.Annotations = addAnnotations(d.Annotations, c.Annotations)
	d.Spec.Template.Annotations = addAnnotations(d.Spec.Template.Annotations, c.Annotations)
}

func (c *Config) applyContainer(container *corev1.Container) {
	container.Env = ReplaceNamed(container.Env, c.Env, EnvName)
	container.EnvFrom = addMissing(container.EnvFrom, c.EnvFrom)
	container.VolumeMounts = ReplaceNamed(container.VolumeMounts, c.VolumeMounts, func(m corev1.VolumeMount) string { return m.Name })
	if c.Resources != nil {
		container.Resources.Requests = c.Resources.Requests
		container.Resources.Limits = c.Resources.Limits
	}
}

// EnvName is the name of a variable, for ReplaceNamed.
func EnvName(e corev1.EnvVar) string { return e.Name }

// ReplaceNamed puts each override in the place of the items of its name, or at the end where there are none. Of several
// overrides of one name the last one wins.
func ReplaceNamed[T any](items, overrides []T, name func(T) string) []T {
	for _, override := range overrides {
		found := false
		for i := range items {
			if name(items[i]) == name(override) {
				items[i], found = override, true
			}
		}
		if !found {
			items = append(items, override)
		}
	}
	return items
}

// addMissing appends what is not there in the very same form.
func addMissing[T any](items, more []T) []T {
	for _, item := range more {
		if !slices.ContainsFunc(items, func(there T) bool { return reflect.DeepEqual(there, item) }) {
			items = append(items, item)
		}
	}
	return items
}

// overrideAffinity replaces each part that is set, removes each that is set but empty, and all when the override is empty.
func overrideAffinity(present, override *corev1.Affinity) *corev1.Affinity {
	if *override == (corev1.Affinity{}) {
		return nil
	}
	out := corev1.Affinity{}
	if present != nil {
		out = *present
	}
	out.NodeAffinity = overridePart(out.NodeAffinity, override.NodeAffinity)
	out.PodAffinity = overridePart(out.PodAffinity, override.PodAffinity)
	out.PodAntiAffinity = overridePart(out.PodAntiAffinity, override.PodAntiAffinity)
	if out == (corev1.Affinity{}) {
		return nil
	}
	return &out
}

func overridePart[T any](present, override *T) *T {
	switch {
	case override == nil:
		return present
	case reflect.ValueOf(*override).IsZero():
		return nil
	}
	return override
}

func addAnnotations(present, more map[string]string) map[string]string {
	for key, value := range more {
		if _, there := present[key]; there {
			continue
		}
		if present == nil {
			present = map[string]string{}
		}
		present[key] = value
	}
	return present
}
