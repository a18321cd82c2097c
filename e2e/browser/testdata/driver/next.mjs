// A production build of Next.js.
import { arrived, back, handled, open, run, step } from './browser.mjs'

const { context, page, close } = await open()
const at = (path) => run.site + path
const go = (name, play) => step(context, name, play)
const heading = (text) => page.waitForFunction((t) => document.querySelector('h1')?.textContent === t, text)
const soft = async (selector) => {
  await handled(page, selector)
  await page.click(selector)
}

try {
  await go('listing', async () => {
    await page.goto(at('/'))
    await handled(page, '#soft-0')
  })
  await go('scroll past thirty links', async () => {
    for (let i = 0; i < 30; i++) {
      await page.locator(`#soft-${i}`).scrollIntoViewIfNeeded()
      await page.waitForTimeout(60)
    }
  })
  await go('ten soft clicks', async () => {
    for (let i = 0; i < 10; i++) {
      await soft(`#soft-${i}`)
      await heading(`Article ${i}`)
      await soft('#back')
      await heading('Thirty articles')
    }
  })
  await go('five soft clicks without prefetch', async () => {
    for (let i = 0; i < 5; i++) {
      await soft(`#cold-${i}`)
      await heading(`Plain ${i}`)
      await soft('#back')
      await heading('Thirty articles')
    }
  })
  await go('ten hard clicks', async () => {
    let again = 0
    for (let i = 0; i < 10; i++) {
      await page.click(`#hard-${i}`)
      await arrived(page, `/article/${i}`)
      again += await back(page, '/')
    }
    return { again }
  })
} finally {
  await close()
}
