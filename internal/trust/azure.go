package trust

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var guid = regexp.MustCompile(`\A[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}\z`)

const exampleGUID = "00000000-0000-0000-0000-000000000000"

type azureTrust struct {
	client, tenant, subscription string
	credential, audience         string
}

func azureSide(i Identity) (azureTrust, error) {
	side := azureTrust{credential: cut("credence_"+i.label(), 120)}
	required := map[string]*string{"clientID": &side.client, "tenantID": &side.tenant}
	if i.fields()["subscriptionID"] != "" {
		required["subscriptionID"] = &side.subscription
	}
	for field, value := range required {
		parts, err := i.want(field, guid, exampleGUID)
		if err != nil {
			return side, err
		}
		*value = parts[0]
	}
	if len(i.Audiences) != 1 {
		return side, fmt.Errorf("it has %d audiences, and a federated identity credential of Azure has exactly one: leave one in spec.audiences, usually api://AzureADTokenExchange", len(i.Audiences))
	}
	side.audience = i.Audiences[0]
	return side, nil
}

func azureCommands(i Identity) (string, error) {
	side, err := azureSide(i)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(side.audience, "@") || strings.HasPrefix(side.audience, "-") {
		return "", errors.New("its audience begins with @ or -, which the Azure CLI takes for a file or an option: use -o terraform")
	}
	subscription := ""
	if side.subscription != "" {
		subscription = " --subscription=" + shell(side.subscription)
	}
	find := func(what string) string {
		return fmt.Sprintf(`$(az identity list%s --query "[?clientId=='%s'].%s" --output tsv)`, subscription, side.client, what)
	}
	return fmt.Sprintf(`# The managed identity whose client ID is %s, in tenant %s. An app registration takes the same values by
# az ad app federated-credential create.
IDENTITY_NAME=%s
RESOURCE_GROUP=%s

%s`, side.client, side.tenant, find("name"), find("resourceGroup"),
		command(`az identity federated-credential create --identity-name "$IDENTITY_NAME" --resource-group "$RESOURCE_GROUP"`+subscription,
			[2]string{"--name=", side.credential}, [2]string{"--issuer=", i.Issuer},
			[2]string{"--subject=", i.Subject}, [2]string{"--audiences=", side.audience})), nil
}

func azureTerraform(i Identity) (string, error) {
	side, err := azureSide(i)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`# The managed identity whose client ID is %s, in tenant %s.
variable "user_assigned_identity_id" {
  type = string
}
variable "resource_group_name" {
  type = string
}

`, side.client, side.tenant) +
		block("resource", []string{"azurerm_federated_identity_credential", i.resourceName()}, member{"name", side.credential},
			member{"resource_group_name", reference("var.resource_group_name")}, member{"parent_id", reference("var.user_assigned_identity_id")},
			member{"issuer", i.Issuer}, member{"subject", i.Subject}, member{"audience", []string{side.audience}}), nil
}
