package trust

import (
	"errors"
	"fmt"
	"strings"
)

type azureTrust struct {
	client, tenant, subscription string
	credential, audience         string
}

func azureSide(i Identity) (azureTrust, error) {
	fields := i.fields()
	side := azureTrust{credential: cut("credence_"+i.label(), 120), client: fields["clientID"], tenant: fields["tenantID"], subscription: fields["subscriptionID"]}
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
	name := i.resourceName()
	variable := func(what string) string { return "variable \"" + name + "_" + what + "\" {\n  type = string\n}\n" }
	return fmt.Sprintf("# The managed identity whose client ID is %s, in tenant %s: its ID and its resource group.\n", side.client, side.tenant) +
		variable("id") + variable("resource_group_name") + "\n" +
		block("resource", []string{"azurerm_federated_identity_credential", name}, member{"name", side.credential},
			member{"resource_group_name", reference("var." + name + "_resource_group_name")}, member{"parent_id", reference("var." + name + "_id")},
			member{"issuer", i.Issuer}, member{"subject", i.Subject}, member{"audience", []string{side.audience}}), nil
}
