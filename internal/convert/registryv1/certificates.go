// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
	"github.com/satchel-dev/satchel/internal/convert/registryv1/bundle"
)

// provider is what a certificate provider adds to the objects of a bundle.
type provider struct {
	// trust returns the annotation by which the provider fills in the CA bundle of an object that trusts the certificate.
	trust func(namespace, certificate string) (key, value string)
	// service returns the annotation of the Service that is served with the certificate; empty: none.
	service func(certificate string) (key, value string)
	// objects issue the certificate.
	objects func(in *input, service, certificate string) []manifest.Manifest
}

// InjectAnnotation on an object that trusts a self-signed certificate names its Secret as namespace/name. The controller
// that applies the object fills in the CA bundle.
const InjectAnnotation = "satchel.dev/inject-ca-from"

// Certificate is one that the controller has to issue under the provider SelfSigned before it applies the objects, for one
// Deployment that serves webhooks.
type Certificate struct {
	// Namespace and Secret name where the Deployment looks for it: a Secret with the keys tls.crt and tls.key.
	Namespace, Secret string
	// DNSNames are those of the Service, from <service>.<namespace> to the full one.
	DNSNames []string
}

var providers = map[CertificateProvider]provider{
	SelfSigned: {
		trust: func(namespace, certificate string) (string, string) {
			return InjectAnnotation, namespace + "/" + certificate
		},
		service: func(string) (string, string) { return "", "" },
		objects: func(*input, string, string) []manifest.Manifest { return nil },
	},
	CertManager: {
		trust: func(namespace, certificate string) (string, string) {
			return "cert-manager.io/inject-ca-from", namespace + "/" + certificate
		},
		service: func(string) (string, string) { return "", "" },
		objects: certManagerObjects,
	},
	ServiceCA: {
		trust: func(string, string) (string, string) { return "service.beta.openshift.io/inject-cabundle", "true" },
		service: func(certificate string) (string, string) {
			return "service.beta.openshift.io/serving-cert-secret-name", certificate
		},
		objects: func(*input, string, string) []manifest.Manifest { return nil },
	},
}

// checkOptions refuses options that do not exist or that the bundle needs (C2).
func checkOptions(b *bundle.Bundle, o Options) []manifest.Problem {
	var problems []manifest.Problem
	if _, known := providers[o.CertificateProvider]; !known {
		switch {
		case o.CertificateProvider != "":
			problems = append(problems, manifest.Problem{Rule: "C2", Message: fmt.Sprintf("the certificate provider %q does not exist", o.CertificateProvider),
				Remedy: "use " + providerNames()})
		case len(b.Webhooks()) > 0:
			problems = append(problems, b.Problem("C2", "set registryV1.certificateProvider to "+providerNames(),
				"the bundle has webhooks, which need certificates, and no certificate provider is chosen"))
		}
	}
	if serving := serving(b); o.CertificateProvider == SelfSigned && serving > mostCertificates {
		problems = append(problems, b.Problem("W1", "serve them from fewer Deployments, or let cert-manager issue the certificates",
			"%d Deployments serve webhooks, and at most %d can have self-signed certificates", serving, mostCertificates))
	}
	if !slices.Contains([]PodAnnotations{"", AllAnnotations, RequiredAnnotations}, o.PodAnnotations) {
		problems = append(problems, manifest.Problem{Rule: "D3", Message: fmt.Sprintf("the choice of Pod annotations %q does not exist", o.PodAnnotations),
			Remedy: "use All or Required"})
	}
	return problems
}

// mostCertificates bounds what is read, issued and watched over for one bundle; published ones have at most two.
const mostCertificates = 50

// serving counts the Deployments that webhooks name.
func serving(b *bundle.Bundle) int {
	names := map[string]bool{}
	for _, w := range b.Webhooks() {
		names[w.DeploymentName] = true
	}
	return len(names)
}

// providerNames lists all for people: "cert-manager, self-signed or service-ca".
func providerNames() string {
	names := slices.Sorted(maps.Keys(providers))
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = string(name)
	}
	last := len(out) - 1
	return strings.Join(out[:last], ", ") + " or " + out[last]
}

// certificates lists what has to be issued, sorted by Secret; nothing under the other providers.
func (in *input) certificates() []Certificate {
	if in.CertificateProvider != SelfSigned {
		return nil
	}
	var out []Certificate
	for _, d := range in.Deployments() {
		if in.served(d.Name) {
			service := serviceName(d.Name)
			out = append(out, Certificate{Namespace: in.InstallNamespace, Secret: certificateName(service), DNSNames: in.hosts(service)})
		}
	}
	slices.SortFunc(out, func(a, b Certificate) int { return strings.Compare(a.Secret, b.Secret) })
	return out
}

// secrets are those that Deployments mount for their certificates.
func (in *input) secrets() []string {
	var names []string
	for _, d := range in.Deployments() {
		if in.served(d.Name) {
			names = append(names, certificateName(serviceName(d.Name)))
		}
	}
	return names
}

// hosts are the names under which a Service of the operator is reached (W7).
func (in *input) hosts(service string) []string {
	host := service + "." + in.InstallNamespace
	return []string{host, host + ".svc", host + ".svc.cluster.local"}
}

// refuseSecrets refuses Secrets of the bundle that a serving certificate is about to be written to.
func (in *input) refuseSecrets() []manifest.Problem {
	issued := map[string]bool{}
	for _, c := range in.certificates() {
		issued[c.Secret] = true
	}
	var problems []manifest.Problem
	for _, m := range in.Others {
		if kind := m.Object.GroupVersionKind(); kind.Group == "" && kind.Kind == "Secret" && issued[m.Object.GetName()] {
			problems = append(problems, m.Problem("W7", "the self-signed certificate of the bundle's webhooks is kept in a Secret of this name, and the two would overwrite each other",
				"take the Secret out of the bundle, or choose another registryV1.certificateProvider"))
		}
	}
	return problems
}

// generateCertificates makes the objects that issue certificates, for each deployment that serves webhooks (W7, W8).
func generateCertificates(in *input) ([]manifest.Manifest, []manifest.Problem) {
	var out []manifest.Manifest
	for _, d := range in.Deployments() {
		if in.served(d.Name) {
			service := serviceName(d.Name)
			out = append(out, providers[in.CertificateProvider].objects(in, service, certificateName(service))...)
		}
	}
	return out, nil
}

// longestCommonName is the limit that X.509 sets.
const longestCommonName = 64

func certManagerObjects(in *input, service, certificate string) []manifest.Manifest {
	host := service + "." + in.InstallNamespace
	spec := map[string]any{
		"dnsNames":    texts(in.hosts(service)),
		"duration":    "17520h0m0s",
		"renewBefore": "24h0m0s",
		"issuerRef":   map[string]any{"name": issuerName(certificate)},
		"secretName":  certificate,
		"usages":      []any{"server auth"},
	}
	if len(host) <= longestCommonName {
		spec["commonName"] = host
	}
	return []manifest.Manifest{
		in.object("cert-manager.io/v1", "Issuer", in.InstallNamespace, issuerName(certificate), map[string]any{
			"spec": map[string]any{"selfSigned": map[string]any{}},
		}),
		in.object("cert-manager.io/v1", "Certificate", in.InstallNamespace, certificate, map[string]any{"spec": spec}),
	}
}

// certificateMount is one of the two places where operators look for their certificate (D6).
type certificateMount struct{ volume, path, certFile, keyFile string }

var certificateMounts = []certificateMount{
	{"webhook-cert", "/tmp/k8s-webhook-server/serving-certs", "tls.crt", "tls.key"},
	{"apiservice-cert", "/apiserver.local.config/certificates", "apiserver.crt", "apiserver.key"},
}

// mountCertificate replaces whatever volumes a Pod has for its certificate by those of the Secret. Init containers see the
// same files where they mounted the replaced volumes, and nothing else changes for them.
func mountCertificate(pod *corev1.PodSpec, secret string) {
	replaced := map[string]bool{}
	for _, m := range certificateMounts {
		replaced[m.volume] = true
		for _, c := range pod.Containers {
			for _, mount := range c.VolumeMounts {
				if mount.MountPath == m.path {
					replaced[mount.Name] = true
				}
			}
		}
	}
	pod.Volumes = slices.DeleteFunc(pod.Volumes, func(v corev1.Volume) bool { return replaced[v.Name] })
	for _, m := range certificateMounts {
		pod.Volumes = append(pod.Volumes, m.volumeFrom(secret))
	}
	for i := range pod.Containers {
		pod.Containers[i].VolumeMounts = remount(pod.Containers[i].VolumeMounts, replaced)
	}
	for i := range pod.InitContainers {
		c := &pod.InitContainers[i]
		if slices.ContainsFunc(c.VolumeMounts, func(mount corev1.VolumeMount) bool { return replaced[mount.Name] }) {
			c.VolumeMounts = remount(c.VolumeMounts, replaced)
		}
	}
}

func (m certificateMount) volumeFrom(secret string) corev1.Volume {
	return corev1.Volume{Name: m.volume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret,
		Items:      []corev1.KeyToPath{{Key: "tls.crt", Path: m.certFile}, {Key: "tls.key", Path: m.keyFile}},
	}}}
}

func remount(mounts []corev1.VolumeMount, replaced map[string]bool) []corev1.VolumeMount {
	mounts = slices.DeleteFunc(mounts, func(mount corev1.VolumeMount) bool { return replaced[mount.Name] })
	for _, m := range certificateMounts {
		mounts = append(mounts, corev1.VolumeMount{Name: m.volume, MountPath: m.path})
	}
	return mounts
}
