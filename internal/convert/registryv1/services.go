// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

const defaultWebhookPort = 443

// servicePort is a port of a webhook Service and where it leads.
type servicePort struct {
	port   int32
	target intstr.IntOrString
}

func portOf(w v1alpha1.WebhookDescription) servicePort {
	p := servicePort{port: cmp.Or(w.ContainerPort, defaultWebhookPort)}
	p.target = intstr.FromInt32(p.port)
	if w.TargetPort != nil {
		p.target = *w.TargetPort
	}
	return p
}

func comparePorts(a, b servicePort) int {
	return cmp.Or(cmp.Compare(a.port, b.port), cmp.Compare(a.target.Type, b.target.Type),
		cmp.Compare(a.target.IntVal, b.target.IntVal), cmp.Compare(a.target.StrVal, b.target.StrVal))
}

// servicePorts returns which port of a Service each wanted one becomes. Two webhooks that want one port to lead to different
// targets get different ports: the first keeps the number, the others take that of their target, or the next free one (W2).
func servicePorts(wanted []servicePort) map[servicePort]int32 {
	slices.SortFunc(wanted, comparePorts)
	wanted = slices.Compact(wanted)
	taken := map[int32]bool{}
	ports := map[servicePort]int32{}
	for _, p := range wanted {
		if !taken[p.port] {
			taken[p.port], ports[p] = true, p.port
		}
	}
	for _, p := range wanted {
		if _, done := ports[p]; done {
			continue
		}
		number := cmp.Or(p.target.IntVal, p.port)
		for taken[number] {
			number = number%65535 + 1
		}
		taken[number], ports[p] = true, number
	}
	return ports
}

// generateWebhookServices makes one Service for each deployment that serves webhooks (W2).
func generateWebhookServices(in *input) ([]manifest.Manifest, []manifest.Problem) {
	var out []manifest.Manifest
	for _, d := range in.Deployments() {
		if in.served(d.Name) {
			out = append(out, in.webhookService(d))
		}
	}
	return out, nil
}

func (in *input) webhookService(d v1alpha1.StrategyDeploymentSpec) manifest.Manifest {
	name := serviceName(d.Name)
	spec := map[string]any{"ports": in.portList(d.Name)}
	if d.Spec.Selector != nil && len(d.Spec.Selector.MatchLabels) > 0 {
		selector := map[string]any{}
		for key, value := range d.Spec.Selector.MatchLabels {
			selector[key] = value
		}
		spec["selector"] = selector
	}
	service := in.object("v1", "Service", in.InstallNamespace, name, map[string]any{"spec": spec})
	if key, value := providers[in.CertificateProvider].service(certificateName(name)); key != "" {
		service.Object.SetAnnotations(map[string]string{key: value})
	}
	return service
}

func (in *input) portList(deployment string) []any {
	ports := in.ports[deployment]
	sorted := make([]servicePort, 0, len(ports))
	for p, number := range ports {
		sorted = append(sorted, servicePort{port: number, target: p.target})
	}
	slices.SortFunc(sorted, comparePorts)
	out := make([]any, 0, len(sorted))
	for _, p := range sorted {
		out = append(out, map[string]any{"name": strconv.Itoa(int(p.port)), "port": int64(p.port), "targetPort": targetPort(p.target)})
	}
	return out
}

func targetPort(target intstr.IntOrString) any {
	if target.Type == intstr.String {
		return target.StrVal
	}
	return int64(target.IntVal)
}

// clientConfig is how the API server reaches a webhook (W5).
func (in *input) clientConfig(w v1alpha1.WebhookDescription, path *string) map[string]any {
	service := map[string]any{
		"namespace": in.InstallNamespace,
		"name":      serviceName(w.DeploymentName),
		"port":      int64(in.ports[w.DeploymentName][portOf(w)]),
	}
	if path != nil {
		service["path"] = *path
	}
	return map[string]any{"service": service}
}

// trust annotates an object so that the provider fills in the CA bundle for a webhook.
func (in *input) trust(m manifest.Manifest, w v1alpha1.WebhookDescription) {
	annotations := m.Object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	key, value := providers[in.CertificateProvider].trust(in.InstallNamespace, certificateName(serviceName(w.DeploymentName)))
	annotations[key] = value
	m.Object.SetAnnotations(annotations)
}

// convert points a CRD at its conversion webhook, whatever it said before (K2, K3).
func (in *input) convert(name string, w v1alpha1.WebhookDescription) []manifest.Problem {
	crd, ok := in.CRD(name)
	if !ok {
		return []manifest.Problem{in.Problem("K2", "add it", "the conversion webhook %q converts %q, which the bundle does not contain", w.GenerateName, name)}
	}
	spec, ok := crd.Object.Object["spec"].(map[string]any)
	if !ok {
		return []manifest.Problem{crd.Problem("K2", fmt.Sprintf("it has no spec, so the conversion webhook %q cannot serve it", w.GenerateName), "complete it")}
	}
	path := "/"
	if w.WebhookPath != nil {
		path = *w.WebhookPath
	}
	spec["conversion"] = map[string]any{
		"strategy": "Webhook",
		"webhook": map[string]any{
			"clientConfig":             in.clientConfig(w, &path),
			"conversionReviewVersions": texts(w.AdmissionReviewVersions),
		},
	}
	in.trust(crd, w)
	return nil
}
