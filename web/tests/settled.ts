import { expect, type Page } from "@playwright/test";

/** settled waits until a view has all that it asks for. */
export async function settled(page: Page): Promise<void> {
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await expect(page.getByText(/^(Asking|Refreshing|Loading|Waiting|Checking)/)).toHaveCount(0);
}
