import { expect, type Page } from "@playwright/test";

export const label = "Resources, as YAML or JSON";

/** write pastes a text into the editor, in place of all that is there. */
export async function write(page: Page, text: string): Promise<void> {
  await expect(page.locator(".cm-content")).toBeVisible();
  const editor = page.getByRole("textbox", { name: label });
  await editor.focus();
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Delete");
  await editor.evaluate((at, pasted) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", pasted);
    at.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  }, text);
}
