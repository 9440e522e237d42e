// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// form is how a reference names its object.
type form int

const (
	byName     form = iota // a text, or texts
	byMapping              // a mapping with name, and perhaps namespace and kind
	byResource             // texts in a rule that says by resources what they are of
)

// reference is a place where objects name others.
type reference struct {
	path []string
	to   schema.GroupKind
	form form
}

func at(path string) []string { return strings.Split(path, "/") }

var (
	configMap      = kindOf("", "ConfigMap")
	secret         = kindOf("", "Secret")
	service        = kindOf("", "Service")
	serviceAccount = kindOf("", "ServiceAccount")
	volumeClaim    = kindOf("", "PersistentVolumeClaim")
	volume         = kindOf("", "PersistentVolume")
	storageClass   = kindOf("storage.k8s.io", "StorageClass")
	role           = kindOf("rbac.authorization.k8s.io", "Role")
	clusterRole    = kindOf("rbac.authorization.k8s.io", "ClusterRole")
	deployment     = kindOf("apps", "Deployment")
)

// podSpecs are where objects hold the specification of a Pod.
var podSpecs = map[schema.GroupKind][]string{
	kindOf("", "Pod"): at("spec"), kindOf("", "PodTemplate"): at("template/spec"), kindOf("", "ReplicationController"): at("spec/template/spec"),
	deployment: at("spec/template/spec"), kindOf("apps", "ReplicaSet"): at("spec/template/spec"),
	kindOf("apps", "DaemonSet"): at("spec/template/spec"), kindOf("apps", "StatefulSet"): at("spec/template/spec"),
	kindOf("batch", "Job"): at("spec/template/spec"), kindOf("batch", "CronJob"): at("spec/jobTemplate/spec/template/spec"),
}

// podReferences are those within such a specification.
var podReferences = append([]reference{
	{at("volumes/configMap/name"), configMap, byName}, {at("volumes/projected/sources/configMap/name"), configMap, byName},
	{at("volumes/secret/secretName"), secret, byName}, {at("volumes/projected/sources/secret/name"), secret, byName},
	{at("volumes/azureFile/secretName"), secret, byName}, {at("volumes/csi/nodePublishSecretRef"), secret, byMapping},
	{at("imagePullSecrets/name"), secret, byName},
	{at("volumes/persistentVolumeClaim/claimName"), volumeClaim, byName},
	{at("serviceAccountName"), serviceAccount, byName}, {at("serviceAccount"), serviceAccount, byName},
	{at("priorityClassName"), kindOf("scheduling.k8s.io", "PriorityClass"), byName},
	{at("runtimeClassName"), kindOf("node.k8s.io", "RuntimeClass"), byName},
	{at("resourceClaims/resourceClaimName"), kindOf("resource.k8s.io", "ResourceClaim"), byName},
	{at("resourceClaims/resourceClaimTemplateName"), kindOf("resource.k8s.io", "ResourceClaimTemplate"), byName},
}, containerReferences()...)

func containerReferences() []reference {
	var all []reference
	for _, list := range containerLists {
		all = append(all,
			reference{at(list + "/env/valueFrom/configMapKeyRef/name"), configMap, byName}, reference{at(list + "/envFrom/configMapRef/name"), configMap, byName},
			reference{at(list + "/env/valueFrom/secretKeyRef/name"), secret, byName}, reference{at(list + "/envFrom/secretRef/name"), secret, byName},
		)
	}
	return all
}

// containerLists are the lists of a Pod that hold containers.
var containerLists = []string{"containers", "initContainers", "ephemeralContainers"}

// references are those of other places, by the kind that holds them: what kustomize follows, and what it does not, where
// that kept an operator of a registry+v1 bundle from working.
var references = map[schema.GroupKind][]reference{
	kindOf("autoscaling", "HorizontalPodAutoscaler"):           {{at("spec/scaleTargetRef"), deployment, byMapping}},
	kindOf("autoscaling.k8s.io", "VerticalPodAutoscaler"):      {{at("spec/targetRef"), deployment, byMapping}},
	kindOf("apps", "StatefulSet"):                              {{at("spec/serviceName"), service, byName}, {at("spec/volumeClaimTemplates/spec/storageClassName"), storageClass, byName}},
	kindOf("networking.k8s.io", "Ingress"):                     ingress,
	kindOf("extensions", "Ingress"):                            ingress,
	kindOf("apiregistration.k8s.io", "APIService"):             {{at("spec/service"), service, byMapping}},
	kindOf("apiextensions.k8s.io", "CustomResourceDefinition"): {{at("spec/conversion/webhook/clientConfig/service"), service, byMapping}, {at("spec/conversion/webhookClientConfig/service"), service, byMapping}},

	kindOf("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"):   {{at("webhooks/clientConfig/service"), service, byMapping}},
	kindOf("admissionregistration.k8s.io", "MutatingWebhookConfiguration"):     {{at("webhooks/clientConfig/service"), service, byMapping}},
	kindOf("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): {{at("spec/policyName"), kindOf("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"), byName}},
	kindOf("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"):   {{at("spec/policyName"), kindOf("admissionregistration.k8s.io", "MutatingAdmissionPolicy"), byName}},

	kindOf("rbac.authorization.k8s.io", "RoleBinding"):        binding,
	kindOf("rbac.authorization.k8s.io", "ClusterRoleBinding"): binding,
	role:        {{path: at("rules/resourceNames"), form: byResource}},
	clusterRole: {{path: at("rules/resourceNames"), form: byResource}},

	serviceAccount: {{at("imagePullSecrets/name"), secret, byName}, {at("secrets/name"), secret, byName}},
	volumeClaim:    {{at("spec/volumeName"), volume, byName}, {at("spec/storageClassName"), storageClass, byName}},
	volume: {
		{at("spec/storageClassName"), storageClass, byName}, {at("spec/claimRef"), volumeClaim, byMapping},
		{at("spec/azureFile/secretName"), secret, byName},
	},
	storageClass: {
		{at("parameters/secretName"), secret, byName}, {at("parameters/adminSecretName"), secret, byName},
		{at("parameters/userSecretName"), secret, byName}, {at("parameters/secretRef"), secret, byName},
	},

	kindOf("cert-manager.io", "Certificate"):   {{at("spec/issuerRef"), kindOf("cert-manager.io", "Issuer"), byMapping}, {at("spec/secretName"), secret, byName}},
	kindOf("cert-manager.io", "Issuer"):        {{at("spec/ca/secretName"), secret, byName}},
	kindOf("cert-manager.io", "ClusterIssuer"): {{at("spec/ca/secretName"), secret, byName}},
}

var (
	ingress = []reference{
		{at("spec/rules/http/paths/backend/service/name"), service, byName}, {at("spec/defaultBackend/service/name"), service, byName},
		{at("spec/rules/http/paths/backend/serviceName"), service, byName}, {at("spec/backend/serviceName"), service, byName},
		{at("spec/tls/secretName"), secret, byName}, {at("spec/ingressClassName"), kindOf("networking.k8s.io", "IngressClass"), byName},
	}
	binding = []reference{{at("roleRef"), role, byMapping}, {at("subjects"), serviceAccount, byMapping}}
)

// annotations name objects of the bundle as name or namespace/name.
var annotations = map[string]schema.GroupKind{
	"satchel.dev/inject-ca-from":                           secret,
	"cert-manager.io/inject-ca-from":                       kindOf("cert-manager.io", "Certificate"),
	"cert-manager.io/inject-ca-from-secret":                secret,
	"cert-manager.io/issuer":                               kindOf("cert-manager.io", "Issuer"),
	"cert-manager.io/cluster-issuer":                       kindOf("cert-manager.io", "ClusterIssuer"),
	"kubernetes.io/service-account.name":                   serviceAccount,
	"service.beta.openshift.io/serving-cert-secret-name":   secret,
	"ingress.kubernetes.io/auth-secret":                    secret,
	"nginx.ingress.kubernetes.io/auth-secret":              secret,
	"nginx.ingress.kubernetes.io/auth-tls-secret":          secret,
	"nginx.ingress.kubernetes.io/fastcgi-params-configmap": configMap,
}

// Host is a name under which a Service of the bundle is reached, <service>.<namespace> and what may follow, with the name
// that the Service has now; any other name stays.
func Host(names renames, host string) string {
	name, rest, found := strings.Cut(host, ".")
	if !found {
		return host
	}
	namespace, _, _ := strings.Cut(rest, ".")
	return names.of(service, namespace, name) + "." + rest
}
